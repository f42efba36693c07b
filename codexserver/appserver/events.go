package appserver

import (
	"cmp"
	stdjson "encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// openItem is an item between its start and its end. The app-server reports the start of a
// command, a patch or the call of a tool before it asks for approval. So the event that begins it is held back
// until it is approved, runs, or has ended as one that ran; one that is refused has no event.
type openItem struct {
	item   apptypes.Item
	held   bool
	twice  bool             // another item with its id was open, so a question may be about either
	denied bool             // by the reviewer or, for the call of a tool, by a person
	first  bool             // it is known to have run in Codex's sandbox
	patch  *patch.Announced // what it destroys, nil if it is no patch or was not looked at
}

// itemKey names an item. The model chooses the id, and a sub-agent may choose the same.
type itemKey struct{ thread, id string }

// hold records an item that has started, and holds back its event.
func (r *turn) hold(key itemKey, it apptypes.Item) *openItem {
	o := &openItem{item: it, held: true}
	time.AfterFunc(quietTime, func() { r.quiet(key, o) })
	if was := r.open[key]; was != nil {
		o.twice = was.twice || !sameAct(&was.item, &it)
	}
	r.open[key] = o
	if it.ProcessID != "" { // it runs, without a question
		o.first = true
		r.begins(key)
	}
	return o
}

// sameAct reports whether a question about two items shows the same.
func sameAct(a, b *apptypes.Item) bool {
	return a.Command == b.Command && a.Cwd == b.Cwd && reflect.DeepEqual(a.Changes, b.Changes)
}

// acts are the types of items that a decision may be about.
var acts = []string{apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange, apptypes.ThreadItemMCPToolCall}

// acted handles a notification about what decisions are about, of the turn's thread or of a sub-agent's.
func (r *turn) acted(method string, n *apptypes.Note) {
	switch it := n.Item; {
	case it != nil && method == apptypes.NoteItemCompleted && filepath.IsAbs(it.SavedPath): // of a generated image
		words := "Codex generated the image " + plain.OneLine(it.SavedPath, plain.MaxPath)
		r.host.Emit(protocol.BackgroundEvent{Message: words, Made: it.SavedPath})
	case it != nil && !slices.Contains(acts, it.Type):
	case it != nil && method == apptypes.NoteItemStarted:
		r.unmoved()
		o := r.hold(itemKey{n.ThreadID, it.ID}, *it)
		if it.Type == apptypes.ThreadItemFileChange {
			o.patch = r.announce(it, true)
		}
	case it != nil && method == apptypes.NoteItemCompleted:
		r.ran(itemKey{n.ThreadID, it.ID}, *it)
	case method == apptypes.NoteItemAutoApprovalReviewStarted, method == apptypes.NoteItemAutoApprovalReviewCompleted:
		r.review(method, n)
	case method == apptypes.NoteAutoApprovalReviewStrictReviewRequired:
		r.host.Emit(protocol.BackgroundEvent{Message: strictly, Remark: true})
	case method == apptypes.NoteHookCompleted:
		r.hooked(n)
	case method == apptypes.NoteGuardianWarning && len(r.reviews) == 0: // else the end of a review says the same
		r.host.Emit(protocol.BackgroundEvent{Message: "Codex's reviewer: " + plain.OneLine(n.Message, maxRationale)})
	case method == apptypes.NoteItemCommandExecutionOutputDelta:
		key := itemKey{n.ThreadID, n.ItemID}
		if o := r.open[key]; o != nil {
			o.first = true
		}
		r.begins(key)
		r.host.Emit(protocol.ExecCommandOutputDelta{CallID: n.ItemID, Stream: protocol.Stdout, Chunk: []byte(n.Delta)})
	}
}

// told emits the events of a notification about the conversation itself, or none. The tokens of a response are counted once it has
// ended; what is read of a response, or a result that the next one is for, comes before that.
func (r *turn) told(method string, n *apptypes.Note) {
	switch method {
	case apptypes.NoteItemCompleted, apptypes.NoteItemAgentMessageDelta, apptypes.NoteItemReasoningSummaryTextDelta,
		apptypes.NoteItemReasoningTextDelta:
		if closed(r.counted) {
			r.counted = make(chan struct{})
		}
	case apptypes.NoteThreadTokenUsageUpdated:
		if !closed(r.counted) {
			close(r.counted)
		}
	}
	switch it := cmp.Or(n.Item, &apptypes.Item{}); method {
	case apptypes.NoteItemStarted:
		if it.Type == apptypes.ThreadItemWebSearch {
			r.host.Emit(protocol.WebSearchBegin{CallID: it.ID})
		}
	case apptypes.NoteItemCompleted:
		r.itemCompleted(it)
	case apptypes.NoteItemAgentMessageDelta:
		r.coming.WriteString(n.Delta)
		r.host.Emit(protocol.AgentMessageDelta{Delta: n.Delta})
	case apptypes.NoteItemReasoningSummaryTextDelta:
		r.host.Emit(protocol.AgentReasoningDelta{Delta: n.Delta})
	case apptypes.NoteItemReasoningSummaryPartAdded:
		r.host.Emit(protocol.AgentReasoningSectionBreak{})
	case apptypes.NoteItemReasoningTextDelta:
		r.host.Emit(protocol.AgentReasoningRawContentDelta{Delta: n.Delta})
	case apptypes.NoteTurnDiffUpdated:
		if n.Diff != r.diff {
			r.diff = n.Diff
			r.host.Emit(protocol.TurnDiff{UnifiedDiff: n.Diff})
		}
	case apptypes.NoteTurnPlanUpdated:
		p := protocol.PlanUpdate{Explanation: n.Explanation, Plan: []protocol.PlanStep{}}
		for _, s := range n.Plan {
			if s.Status == apptypes.TurnPlanStepStatusInProgress {
				s.Status = "in_progress"
			}
			p.Plan = append(p.Plan, protocol.PlanStep{Step: s.Step, Status: s.Status})
		}
		r.host.Emit(p)
	case apptypes.NoteThreadTokenUsageUpdated, apptypes.NoteAccountRateLimitsUpdated:
		if u := n.TokenUsage; u != nil {
			total, last := protocol.TokenUsage(u.Total), protocol.TokenUsage(u.Last)
			r.usage = &protocol.TokenUsageInfo{TotalTokenUsage: total, LastTokenUsage: last,
				ModelContextWindow: u.ModelContextWindow}
		}
		r.host.Emit(protocol.TokenCount{Info: r.usage, RateLimits: limitsOf(r.thread.child.limits.Load())})
	case apptypes.NoteError: // one after which Codex does not try again ends the turn, whose end has it
		if e := lenient[apptypes.TurnError](n.Error); n.WillRetry && e.Message != "" {
			r.host.Emit(protocol.StreamError{Message: r.thread.child.redact(wordsOf(&e))})
		}
	case apptypes.NoteModelRerouted:
		why := n.Reason
		if why == apptypes.ModelRerouteReasonHighRiskCyberActivity {
			why = "Codex's provider takes this for activity that may endanger the security of computers"
		}
		r.host.Emit(protocol.ModelReroute{FromModel: n.FromModel, ToModel: n.ToModel, Reason: why})
	}
}

// begins emits the event that was held back for an item, once.
func (r *turn) begins(key itemKey) {
	o := r.open[key]
	if o == nil || !o.held {
		return
	}
	o.held = false
	switch it := &o.item; it.Type {
	case apptypes.ThreadItemMCPToolCall:
		r.host.Emit(protocol.MCPToolCallBegin{CallID: it.ID, Invocation: invocation(it)})
	case apptypes.ThreadItemFileChange:
		r.host.Emit(protocol.PatchApplyBegin{CallID: key.id, AutoApproved: !r.asked[key], Changes: o.changes()})
	default:
		r.host.Emit(protocol.ExecCommandBegin{
			CallID: key.id, Command: splitCommand(it.Command), Cwd: it.Cwd,
			ParsedCmd: parsedCommands(it.CommandActions),
		})
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

// said returns the events of what the model said or thought, or the user said.
func said(it *apptypes.Item) (all []protocol.EventMsg) {
	switch it.Type {
	case apptypes.ThreadItemAgentMessage:
		all = append(all, protocol.AgentMessage{Message: it.Text})
	case apptypes.ThreadItemReasoning:
		for _, s := range it.Summary {
			all = append(all, protocol.AgentReasoning{Text: s})
		}
		for _, s := range lenient[[]string](it.Content) {
			all = append(all, protocol.AgentReasoningRawContent{Text: s})
		}
	case apptypes.ThreadItemUserMessage:
		all = append(all, userMessage(lenient[[]apptypes.Input](it.Content)))
	}
	return all
}

// itemCompleted translates the end of an item that no decision is about.
func (r *turn) itemCompleted(it *apptypes.Item) {
	for _, m := range said(it) {
		if u, is := m.(protocol.UserMessage); !is || r.letters.read(&u) {
			r.host.Emit(m)
		}
	}
	switch it.Type {
	case apptypes.ThreadItemAgentMessage:
		r.last = &it.Text
		r.coming.Reset()
		if it.Phase == apptypes.MessagePhaseFinalAnswer {
			r.final = &it.Text
		}
	case apptypes.ThreadItemContextCompaction:
		r.host.Emit(protocol.BackgroundEvent{Message: "Codex summarised the conversation to make room", Remark: true})
	case apptypes.ThreadItemWebSearch:
		r.host.Emit(protocol.WebSearchEnd{CallID: it.ID, Query: it.Query})
	case apptypes.ThreadItemImageView:
		r.host.Emit(protocol.ViewImageToolCall{CallID: it.ID, Path: it.Path})
	}
}

// ran translates the end of a command, a patch or the call of a tool. If it was declined and had not begun, it never ran.
// Then there is only an event if Codex declined it by itself. A command that had begun has run in Codex's sandbox, and
// was declined for a run outside.
func (r *turn) ran(key itemKey, it apptypes.Item) {
	o := r.open[key]
	if o == nil { // no start was reported
		o = r.hold(key, it)
	}
	o.first = o.first || it.ProcessID != ""
	defer func() {
		delete(r.open, key)
		delete(r.asked, key) // the model may choose its id again
	}()
	open := o.held && (it.Type != apptypes.ThreadItemMCPToolCall && r.asked[key] || r.reviewing(key))
	// else after a time-out of the reviewer, and of a tool
	no := it.Status == apptypes.CommandExecutionStatusDeclined ||
		(o.denied || open) && it.Status == apptypes.MCPToolCallStatusFailed && it.ProcessID == "" && it.DurationMs == 0
	if no && o.held && it.ProcessID == "" {
		if !r.asked[key] {
			r.host.Emit(declined(it, ""))
		}
		return
	}
	r.begins(key)
	status := ""
	if no {
		status = protocol.ExecDeclined
		e := declined(it, r.before(o))
		if r.asked[key] { // who refused it is known
			e = protocol.BackgroundEvent{Message: words(e.Refused) + ": " + status + r.before(o)}
		}
		if !o.denied { // else its refusal said so
			defer r.host.Emit(e)
		}
	}
	took := protocol.Duration(time.Duration(it.DurationMs) * time.Millisecond)
	switch it.Type {
	case apptypes.ThreadItemMCPToolCall:
		r.host.Emit(protocol.MCPToolCallEnd{CallID: it.ID, Invocation: invocation(&it), Duration: took,
			Result: toolResult(&it)})
	case apptypes.ThreadItemFileChange:
		end := protocol.PatchApplyEnd{CallID: it.ID, Success: it.Status == apptypes.PatchApplyStatusCompleted,
			Stderr: status}
		switch {
		case end.Success:
			end.Stdout = o.patchSummary()
		case status == "":
			end.Stderr = notApplied
		}
		r.host.Emit(end)
	default:
		r.host.Emit(protocol.ExecCommandEnd{
			CallID: it.ID, Stdout: it.AggregatedOutput, AggregatedOutput: it.AggregatedOutput,
			FormattedOutput: it.AggregatedOutput, ExitCode: int(*cmp.Or(it.ExitCode, new(int64(-1)))), Duration: took,
			Status: status,
		})
	}
}

// finish translates the end of the turn, and returns the error that it ends with.
func (r *turn) finish(t *apptypes.Turn) error {
	answer := r.answer()
	switch t.Status {
	case apptypes.TurnStatusCompleted:
		r.host.Emit(protocol.TaskComplete{LastAgentMessage: answer})
		return nil
	case apptypes.TurnStatusInterrupted:
		return r.abort(nil)
	}
	e := cmp.Or(t.Error, &apptypes.TurnError{Message: "the turn ended as " + t.Status})
	if _, reason, cut := strings.Cut(e.Message, incomplete); cut {
		if r.coming.Len() > 0 {
			answer = new(r.coming.String())
		}
		why := "the provider ended it (" + reason + ")"
		switch reason {
		case "max_output_tokens":
			why = "it reached the model's limit of output tokens"
		case "content_filter":
			why = "the provider's content filter ended it"
		}
		r.host.Emit(protocol.TaskComplete{LastAgentMessage: answer, Incomplete: why})
		return nil
	}
	words := textOf(e)
	if kind, _ := appclient.ErrorKind(e); kind == apptypes.CodexErrorInfoUsageLimitExceeded ||
		kind == apptypes.CodexErrorInfoRateLimitExceeded {
		if limits := limitsOf(r.thread.child.limits.Load()); limits != nil {
			words += "\nlimits of the account: " + limits.Words()
		}
	}
	return r.fail(words)
}

// incomplete begins Codex's message about a response that the provider cut off.
const incomplete = "Incomplete response returned, reason: "

// fail ends the turn as failed.
func (r *turn) fail(msg string) error {
	if msg = redact(msg); r.thread != nil {
		msg = r.thread.child.redact(msg)
	}
	r.host.Emit(protocol.Error{Message: msg})
	r.host.Emit(protocol.TaskComplete{})
	return &engine.TurnError{Message: msg}
}

// abort ends the turn as interrupted.
func (r *turn) abort(cause error) error {
	r.host.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
	return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: cause}
}

// answer returns the last message that the model marked as its answer, else the last
// message.
func (r *turn) answer() *string { return cmp.Or(r.final, r.last) }

// limitsOf translates the account's limits as they are now. It returns nil if there are none.
func limitsOf(r *apptypes.RateLimits) *protocol.RateLimits {
	if r == nil || r.Primary == nil && r.Secondary == nil {
		return nil
	}
	return &protocol.RateLimits{Primary: limitWindow(r.Primary), Secondary: limitWindow(r.Secondary)}
}

func limitWindow(w *apptypes.RateWindow) *protocol.RateLimitWindow {
	if w == nil {
		return nil
	}
	out := &protocol.RateLimitWindow{UsedPercent: float64(w.UsedPercent), WindowMinutes: w.WindowDurationMins}
	if w.ResetsAt != nil {
		out.ResetsInSeconds = new(max(0, *w.ResetsAt-time.Now().Unix()))
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

// declined returns the refusal of an item that was declined without a question. More is added to its reason.
func declined(it apptypes.Item, more string) protocol.BackgroundEvent {
	r := subject(&it)
	r.Reason = "declined by the policy of Codex"
	if it.AggregatedOutput != "" && more == "" {
		r.Reason = it.AggregatedOutput
	}
	r.Reason += more
	return protocol.BackgroundEvent{Message: words(r) + ": " + r.Reason, Refused: r}
}

// subject returns what an item would do.
func subject(it *apptypes.Item) *protocol.Refused {
	r := &protocol.Refused{Cwd: it.Cwd}
	switch it.Type {
	case apptypes.ThreadItemMCPToolCall:
		r.Tool = it.Server + "/" + it.Tool
	case apptypes.ThreadItemFileChange:
		r.Changes = fileChanges(it.Changes)
	default:
		r.Command = splitCommand(it.Command)
	}
	return r
}

// past returns the events of a thread's earlier turns.
func past(turns []apptypes.Turn) (all []stdjson.RawMessage) {
	for _, t := range turns {
		for _, raw := range t.Items {
			it := lenient[apptypes.Item](raw)
			for _, m := range said(&it) {
				if b, err := protocol.AppendEvent(nil, m); err == nil {
					all = append(all, b)
				}
			}
		}
	}
	return all
}
