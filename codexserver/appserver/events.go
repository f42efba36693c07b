package appserver

import (
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// translator turns the notifications of one turn into events. It is not safe for
// concurrent use.
type translator struct {
	now    func() time.Time
	redact func(string) string // hides keys in errors

	open   map[string]*openItem // items that have started and not completed
	items  map[string]bool      // all commands and patches; true if they were asked about
	diff   string               // the last one emitted
	last   *string              // the model's last message
	final  *string              // the last message that the model marked as its answer
	coming strings.Builder      // the message that is being written
	usage  *protocol.TokenUsageInfo
	limits *protocol.RateLimits
	failed *apptypes.TurnError // of an error notification
}

// openItem is an item between its start and its end. The app-server reports the start of a
// command or a patch before it asks for approval. So the event that begins it is held back
// until it is approved or runs; one that is refused has no event.
type openItem struct {
	item  apptypes.Item
	held  bool
	asked bool
	timer *time.Timer // releases it; nil before it is set
}

// letGo stops the timer of an item.
func (o *openItem) letGo() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

func newTranslator() *translator {
	return &translator{now: time.Now, redact: redact, open: map[string]*openItem{}, items: map[string]bool{}}
}

// notification translates a notification of the turn's thread into events, or none.
func (tr *translator) notification(method string, n *apptypes.Note) ([]protocol.EventMsg, error) {
	switch method {
	case apptypes.NoteItemStarted:
		it, err := appclient.ReadItem(n.Item)
		if err != nil {
			return nil, err
		}
		return tr.started(it), nil
	case apptypes.NoteItemCompleted:
		it, err := appclient.ReadItem(n.Item)
		if err != nil {
			return nil, err
		}
		return tr.completed(it), nil
	case apptypes.NoteItemAgentMessageDelta:
		tr.coming.WriteString(n.Delta)
		return one(protocol.AgentMessageDelta{Delta: n.Delta}), nil
	case apptypes.NoteItemReasoningSummaryTextDelta:
		return one(protocol.AgentReasoningDelta{Delta: n.Delta}), nil
	case apptypes.NoteItemReasoningSummaryPartAdded:
		return one(protocol.AgentReasoningSectionBreak{}), nil
	case apptypes.NoteItemReasoningTextDelta:
		return one(protocol.AgentReasoningRawContentDelta{Delta: n.Delta}), nil
	case apptypes.NoteItemCommandExecutionOutputDelta:
		return append(tr.release(n.ItemID), protocol.ExecCommandOutputDelta{
			CallID: n.ItemID, Stream: protocol.Stdout, Chunk: []byte(n.Delta),
		}), nil
	case apptypes.NoteTurnDiffUpdated:
		if n.Diff == tr.diff {
			return nil, nil
		}
		tr.diff = n.Diff
		return one(protocol.TurnDiff{UnifiedDiff: n.Diff}), nil
	case apptypes.NoteTurnPlanUpdated:
		return one(plan(n)), nil
	case apptypes.NoteThreadTokenUsageUpdated:
		if n.TokenUsage == nil {
			return nil, nil
		}
		tr.usage = usageInfo(n.TokenUsage)
		return one(protocol.TokenCount{Info: tr.usage, RateLimits: tr.limits}), nil
	case apptypes.NoteAccountRateLimitsUpdated:
		return tr.rateLimits(n.RateLimits), nil
	case apptypes.NoteError:
		return tr.error(n)
	}
	return nil, nil
}

func one(m protocol.EventMsg) []protocol.EventMsg { return []protocol.EventMsg{m} }

// started translates the start of an item.
func (tr *translator) started(it apptypes.Item) []protocol.EventMsg {
	switch it.Type {
	case apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange:
		tr.open[it.ID] = &openItem{item: it, held: true}
		if _, known := tr.items[it.ID]; !known {
			tr.items[it.ID] = false
		}
	case apptypes.ThreadItemMCPToolCall:
		return one(protocol.MCPToolCallBegin{CallID: it.ID, Invocation: invocation(&it)})
	case apptypes.ThreadItemWebSearch:
		return one(protocol.WebSearchBegin{CallID: it.ID})
	}
	return nil
}

// ask records that a question about the item is open.
func (tr *translator) ask(id string) {
	tr.items[id] = true
	if o := tr.open[id]; o != nil {
		o.asked = true
	}
}

// release returns the event that was held back for an item. It returns it once.
func (tr *translator) release(id string) []protocol.EventMsg {
	o := tr.open[id]
	if o == nil || !o.held {
		return nil
	}
	o.held = false
	it := &o.item
	if it.Type == apptypes.ThreadItemFileChange {
		return one(protocol.PatchApplyBegin{CallID: id, AutoApproved: !o.asked, Changes: fileChanges(it.Changes)})
	}
	return one(protocol.ExecCommandBegin{
		CallID: id, Command: splitCommand(it.Command), Cwd: it.Cwd, ParsedCmd: parsedCommands(it.CommandActions),
	})
}

// letGo stops the timers of all open items.
func (tr *translator) letGo() {
	for _, o := range tr.open {
		o.letGo()
	}
}

// splitCommand returns the words of a command line. The app-server made the line from an
// argv. A line with an open quote is returned as one word, so that a person sees all of it.
func splitCommand(line string) []string {
	words, ok := shellword.Split(line)
	if !ok {
		return []string{line}
	}
	return words
}

// completed translates the end of an item.
func (tr *translator) completed(it apptypes.Item) []protocol.EventMsg {
	switch it.Type {
	case apptypes.ThreadItemAgentMessage:
		tr.last = &it.Text
		tr.coming.Reset()
		if it.Phase == apptypes.MessagePhaseFinalAnswer {
			tr.final = &it.Text
		}
		return one(protocol.AgentMessage{Message: it.Text})
	case apptypes.ThreadItemReasoning:
		var all []protocol.EventMsg
		for _, s := range it.Summary {
			all = append(all, protocol.AgentReasoning{Text: s})
		}
		for _, s := range it.Content {
			all = append(all, protocol.AgentReasoningRawContent{Text: s})
		}
		return all
	case apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange:
		return tr.ran(it)
	case apptypes.ThreadItemMCPToolCall:
		return one(protocol.MCPToolCallEnd{
			CallID: it.ID, Invocation: invocation(&it), Duration: milliseconds(it.DurationMs), Result: toolResult(&it),
		})
	case apptypes.ThreadItemWebSearch:
		return one(protocol.WebSearchEnd{CallID: it.ID, Query: it.Query})
	case apptypes.ThreadItemImageView:
		return one(protocol.ViewImageToolCall{CallID: it.ID, Path: it.Path})
	}
	return nil
}

// ran translates the end of a command or a patch. If it was declined, it never began. Then
// there is only an event if Codex declined it by itself.
func (tr *translator) ran(it apptypes.Item) []protocol.EventMsg {
	asked := tr.items[it.ID]
	tr.items[it.ID] = asked
	o := tr.open[it.ID]
	if o == nil { // no start was reported
		tr.open[it.ID] = &openItem{item: it, held: true}
		o = tr.open[it.ID]
	}
	o.letGo()
	defer delete(tr.open, it.ID)
	if it.Status == apptypes.CommandExecutionStatusDeclined && o.held {
		if asked {
			return nil
		}
		return one(declined(it))
	}
	events := tr.release(it.ID)
	if it.Type == apptypes.ThreadItemFileChange {
		end := protocol.PatchApplyEnd{CallID: it.ID, Success: it.Status == apptypes.PatchApplyStatusCompleted}
		if end.Success {
			end.Stdout = patchSummary(it.Changes)
		}
		return append(events, end)
	}
	code := -1
	if it.ExitCode != nil {
		code = int(*it.ExitCode)
	}
	return append(events, protocol.ExecCommandEnd{
		CallID: it.ID, Stdout: it.AggregatedOutput, AggregatedOutput: it.AggregatedOutput,
		FormattedOutput: it.AggregatedOutput, ExitCode: code, Duration: milliseconds(it.DurationMs),
	})
}

// rateLimits records the limits and returns an event unless they are empty.
func (tr *translator) rateLimits(r *apptypes.RateLimits) []protocol.EventMsg {
	limits := limitsOf(r, tr.now())
	if limits == nil {
		return nil
	}
	tr.limits = limits
	return one(protocol.TokenCount{Info: tr.usage, RateLimits: tr.limits})
}

// error translates an error after which Codex tries again. Another error ends the
// turn and is reported at its end.
func (tr *translator) error(n *apptypes.Note) ([]protocol.EventMsg, error) {
	e := n.Error
	if e == nil {
		e = &apptypes.TurnError{}
	}
	if !n.WillRetry {
		tr.failed = e
		return nil, nil
	}
	msg := e.Message
	if e.AdditionalDetails != "" {
		msg += ": " + e.AdditionalDetails
	}
	return one(protocol.StreamError{Message: tr.redact(msg)}), nil
}

// end translates the end of the turn, and returns the error that it ends with.
func (tr *translator) end(t *apptypes.Turn) ([]protocol.EventMsg, error) {
	switch t.Status {
	case apptypes.TurnStatusCompleted:
		return one(protocol.TaskComplete{LastAgentMessage: tr.answer()}), nil
	case apptypes.TurnStatusInterrupted:
		return tr.abort(nil)
	}
	e := t.Error
	if e == nil {
		e = tr.failed
	}
	if e == nil {
		e = &apptypes.TurnError{Message: "the turn ended as " + t.Status}
	}
	if _, reason, cut := strings.Cut(e.Message, incomplete); cut {
		text := tr.answer()
		if tr.coming.Len() > 0 {
			text = new(tr.coming.String())
		}
		return one(protocol.TaskComplete{LastAgentMessage: text, Incomplete: whyIncomplete(reason)}), nil
	}
	text := textOf(e)
	if kind, _ := appclient.ErrorKind(e); tr.limits != nil && (kind == apptypes.CodexErrorInfoUsageLimitExceeded || kind == apptypes.CodexErrorInfoRateLimitExceeded) {
		text += "\nlimits of the account: " + tr.limits.Words(0)
	}
	return tr.fail(text)
}

// incomplete begins Codex's message about a response that the provider cut off.
const incomplete = "Incomplete response returned, reason: "

func whyIncomplete(reason string) string {
	switch reason {
	case "max_output_tokens":
		return "it reached the model's limit of output tokens"
	case "content_filter":
		return "the provider's content filter ended it"
	}
	return "the provider ended it (" + reason + ")"
}

// fail ends the turn as failed.
func (tr *translator) fail(msg string) ([]protocol.EventMsg, error) {
	msg = tr.redact(msg)
	return []protocol.EventMsg{protocol.Error{Message: msg}, protocol.TaskComplete{}}, &engine.TurnError{Message: msg}
}

// abort ends the turn as interrupted.
func (tr *translator) abort(cause error) ([]protocol.EventMsg, error) {
	const reason = protocol.AbortInterrupted
	return one(protocol.TurnAborted{Reason: reason}), &engine.AbortError{Reason: reason, Cause: cause}
}

// answer returns the last message that the model marked as its answer, else the last
// message.
func (tr *translator) answer() *string {
	if tr.final != nil {
		return tr.final
	}
	return tr.last
}

func plan(n *apptypes.Note) protocol.PlanUpdate {
	p := protocol.PlanUpdate{Explanation: n.Explanation, Plan: []protocol.PlanStep{}}
	for _, s := range n.Plan {
		if s.Status == apptypes.TurnPlanStepStatusInProgress {
			s.Status = "in_progress"
		}
		p.Plan = append(p.Plan, protocol.PlanStep{Step: s.Step, Status: s.Status})
	}
	return p
}

func usageInfo(u *apptypes.TokenUsage) *protocol.TokenUsageInfo {
	return &protocol.TokenUsageInfo{
		TotalTokenUsage: usageOf(u.Total), LastTokenUsage: usageOf(u.Last), ModelContextWindow: u.ModelContextWindow,
	}
}

func usageOf(c apptypes.TokenCount) protocol.TokenUsage {
	return protocol.TokenUsage{
		InputTokens: c.InputTokens, CachedInputTokens: c.CachedInputTokens, OutputTokens: c.OutputTokens,
		ReasoningOutputTokens: c.ReasoningOutputTokens, TotalTokens: c.TotalTokens,
	}
}

// limitsOf translates the account's limits. It returns nil if there are none.
func limitsOf(r *apptypes.RateLimits, now time.Time) *protocol.RateLimits {
	if r == nil || r.Primary == nil && r.Secondary == nil {
		return nil
	}
	return &protocol.RateLimits{Primary: limitWindow(r.Primary, now), Secondary: limitWindow(r.Secondary, now)}
}

func limitWindow(w *apptypes.RateWindow, now time.Time) *protocol.RateLimitWindow {
	if w == nil {
		return nil
	}
	out := &protocol.RateLimitWindow{UsedPercent: float64(w.UsedPercent), WindowMinutes: w.WindowDurationMins}
	if w.ResetsAt != nil {
		out.ResetsInSeconds = new(max(0, *w.ResetsAt-now.Unix()))
	}
	return out
}

func invocation(it *apptypes.Item) protocol.MCPInvocation {
	return protocol.MCPInvocation{Server: it.Server, Tool: it.Tool, Arguments: it.Arguments}
}

func toolResult(it *apptypes.Item) protocol.MCPToolCallResult {
	switch {
	case it.Error != nil:
		return protocol.MCPToolCallResult{Err: &it.Error.Message}
	case len(it.Result) > 0 && string(it.Result) != "null":
		return protocol.MCPToolCallResult{Ok: it.Result}
	}
	return protocol.MCPToolCallResult{Err: new("the tool call " + it.Status)}
}

func milliseconds(n int64) protocol.Duration {
	return protocol.Duration(time.Duration(n) * time.Millisecond)
}

// parsedCommands translates the actions of a command. It never returns nil, so that the
// event has a list.
func parsedCommands(actions []apptypes.CommandAction) []protocol.ParsedCommand {
	list := make([]protocol.ParsedCommand, 0, len(actions))
	for _, a := range actions {
		p := protocol.ParsedCommand{Type: a.Type, Cmd: a.Command, Name: a.Name, Query: a.Query, Path: a.Path}
		if p.Type == apptypes.CommandActionListFiles {
			p.Type = "list_files"
		}
		list = append(list, p)
	}
	return list
}

func fileChanges(updates []apptypes.FileUpdate) map[string]protocol.FileChange {
	changes := make(map[string]protocol.FileChange, len(updates))
	for _, u := range updates {
		var c protocol.FileChange
		switch u.Kind.Type {
		case apptypes.PatchChangeKindAdd:
			c.Add = &protocol.FileContent{Content: u.Diff}
		case apptypes.PatchChangeKindDelete:
			c.Delete = &protocol.FileContent{Content: u.Diff}
		default:
			c.Update = &protocol.FileUpdate{UnifiedDiff: u.Diff, MovePath: u.Kind.MovePath}
		}
		changes[u.Path] = c
	}
	return changes
}

// patchSummary lists the files that a patch changed, one a line.
func patchSummary(updates []apptypes.FileUpdate) string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, u := range updates {
		letter, path := "M", u.Path
		switch {
		case u.Kind.Type == apptypes.PatchChangeKindAdd:
			letter = "A"
		case u.Kind.Type == apptypes.PatchChangeKindDelete:
			letter = "D"
		case u.Kind.MovePath != nil:
			path = *u.Kind.MovePath
		}
		b.WriteString(letter + " " + path + "\n")
	}
	return b.String()
}

// declined returns the refusal of an item that was declined without a question.
func declined(it apptypes.Item) protocol.BackgroundEvent {
	r := protocol.Refused{Reason: "declined by the policy of Codex", Cwd: it.Cwd}
	if it.AggregatedOutput != "" {
		r.Reason = it.AggregatedOutput
	}
	if it.Type == apptypes.ThreadItemFileChange {
		r.Changes = fileChanges(it.Changes)
	} else {
		r.Command = splitCommand(it.Command)
	}
	what := "run the command"
	if r.Changes != nil {
		what = "apply the patch"
	}
	return protocol.BackgroundEvent{Message: "Codex did not " + what + ": " + r.Reason, Refused: &r}
}
