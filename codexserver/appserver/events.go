package appserver

import (
	"cmp"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/go-json-experiment/json"
)

// openItem is an item between its start and its end. The app-server reports the start of a
// command or a patch before it asks for approval. So the event that begins it is held back
// until it is approved or runs; one that is refused has no event.
type openItem struct {
	item  apptypes.Item
	held  bool
	timer *time.Timer // releases it
	twice bool        // another item with its id was open, so a question may be about either
}

// itemKey names an item. The model chooses the id, and a sub-agent may choose the same.
type itemKey struct{ thread, id string }

// hold records an item that has started, and holds back its event.
func (r *turn) hold(key itemKey, it apptypes.Item) *openItem {
	o := &openItem{item: it, held: true, timer: time.AfterFunc(holdBack, func() { r.release(key, false) })}
	if was := r.seen.open[key]; was != nil {
		was.timer.Stop()
		o.twice = was.twice || !sameAct(&was.item, &it)
	}
	r.seen.open[key] = o
	return o
}

// sameAct reports whether a question about two items shows the same.
func sameAct(a, b *apptypes.Item) bool {
	return a.Command == b.Command && a.Cwd == b.Cwd && reflect.DeepEqual(a.Changes, b.Changes)
}

// notification emits the events of a notification of the turn's thread, or none.
func (r *turn) notification(method string, n *apptypes.Note) {
	switch method {
	case apptypes.NoteItemStarted, apptypes.NoteItemCompleted:
		if n.Item == nil {
			break
		}
		key := itemKey{n.ThreadID, n.Item.ID}
		if method == apptypes.NoteItemStarted {
			r.itemStarted(key, *n.Item)
		} else {
			r.itemCompleted(key, *n.Item)
		}
	case apptypes.NoteItemAgentMessageDelta:
		r.seen.coming.WriteString(n.Delta)
		r.host.Emit(protocol.AgentMessageDelta{Delta: n.Delta})
	case apptypes.NoteItemReasoningSummaryTextDelta:
		r.host.Emit(protocol.AgentReasoningDelta{Delta: n.Delta})
	case apptypes.NoteItemReasoningSummaryPartAdded:
		r.host.Emit(protocol.AgentReasoningSectionBreak{})
	case apptypes.NoteItemReasoningTextDelta:
		r.host.Emit(protocol.AgentReasoningRawContentDelta{Delta: n.Delta})
	case apptypes.NoteItemCommandExecutionOutputDelta:
		r.begins(itemKey{n.ThreadID, n.ItemID})
		r.host.Emit(protocol.ExecCommandOutputDelta{CallID: n.ItemID, Stream: protocol.Stdout, Chunk: []byte(n.Delta)})
	case apptypes.NoteTurnDiffUpdated:
		if n.Diff != r.seen.diff {
			r.seen.diff = n.Diff
			r.host.Emit(protocol.TurnDiff{UnifiedDiff: n.Diff})
		}
	case apptypes.NoteTurnPlanUpdated:
		r.host.Emit(plan(n))
	case apptypes.NoteThreadTokenUsageUpdated:
		if u := n.TokenUsage; u != nil {
			total, last := protocol.TokenUsage(u.Total), protocol.TokenUsage(u.Last)
			r.seen.usage = &protocol.TokenUsageInfo{TotalTokenUsage: total, LastTokenUsage: last, ModelContextWindow: u.ModelContextWindow}
			r.host.Emit(protocol.TokenCount{Info: r.seen.usage, RateLimits: limitsOf(r.thread.child.limits.Load())})
		}
	case apptypes.NoteAccountRateLimitsUpdated:
		r.host.Emit(protocol.TokenCount{Info: r.seen.usage, RateLimits: limitsOf(r.thread.child.limits.Load())})
	case apptypes.NoteError: // one after which Codex does not try again ends the turn, whose end has it
		if n.WillRetry && n.Error != nil {
			r.host.Emit(protocol.StreamError{Message: r.redact(wordsOf(n.Error))})
		}
	}
}

// itemStarted translates the start of an item.
func (r *turn) itemStarted(key itemKey, it apptypes.Item) {
	switch it.Type {
	case apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange:
		r.hold(key, it)
	case apptypes.ThreadItemMCPToolCall:
		r.host.Emit(protocol.MCPToolCallBegin{CallID: it.ID, Invocation: invocation(&it)})
	case apptypes.ThreadItemWebSearch:
		r.host.Emit(protocol.WebSearchBegin{CallID: it.ID})
	}
}

// begins emits the event that was held back for an item, once.
func (r *turn) begins(key itemKey) {
	o := r.seen.open[key]
	if o == nil || !o.held {
		return
	}
	o.held = false
	it := &o.item
	if it.Type == apptypes.ThreadItemFileChange {
		r.host.Emit(protocol.PatchApplyBegin{CallID: key.id, AutoApproved: !r.seen.asked[key], Changes: fileChanges(it.Changes)})
		return
	}
	r.host.Emit(protocol.ExecCommandBegin{
		CallID: key.id, Command: splitCommand(it.Command), Cwd: it.Cwd, ParsedCmd: parsedCommands(it.CommandActions),
	})
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
		var content []string
		_ = json.Unmarshal(it.Content, &content) // nil if it has none
		for _, s := range content {
			all = append(all, protocol.AgentReasoningRawContent{Text: s})
		}
	case apptypes.ThreadItemUserMessage:
		var content []apptypes.Input
		_ = json.Unmarshal(it.Content, &content)
		all = append(all, userMessage(content))
	}
	return all
}

// itemCompleted translates the end of an item.
func (r *turn) itemCompleted(key itemKey, it apptypes.Item) {
	for _, m := range said(&it) {
		if u, is := m.(protocol.UserMessage); !is || r.letters.read(&u) {
			r.host.Emit(m)
		}
	}
	switch it.Type {
	case apptypes.ThreadItemAgentMessage:
		r.seen.last = &it.Text
		r.seen.coming.Reset()
		if it.Phase == apptypes.MessagePhaseFinalAnswer {
			r.seen.final = &it.Text
		}
	case apptypes.ThreadItemCommandExecution, apptypes.ThreadItemFileChange:
		r.ran(key, it)
	case apptypes.ThreadItemMCPToolCall:
		r.host.Emit(protocol.MCPToolCallEnd{
			CallID: it.ID, Invocation: invocation(&it), Duration: milliseconds(it.DurationMs), Result: toolResult(&it),
		})
	case apptypes.ThreadItemWebSearch:
		r.host.Emit(protocol.WebSearchEnd{CallID: it.ID, Query: it.Query})
	case apptypes.ThreadItemImageView:
		r.host.Emit(protocol.ViewImageToolCall{CallID: it.ID, Path: it.Path})
	}
}

// ran translates the end of a command or a patch. If it was declined, it never began. Then
// there is only an event if Codex declined it by itself.
func (r *turn) ran(key itemKey, it apptypes.Item) {
	o := r.seen.open[key]
	if o == nil { // no start was reported
		o = r.hold(key, it)
	}
	o.timer.Stop()
	defer delete(r.seen.open, key)
	if it.Status == apptypes.CommandExecutionStatusDeclined && o.held {
		if !r.seen.asked[key] {
			r.host.Emit(declined(it))
		}
		return
	}
	r.begins(key)
	if it.Type == apptypes.ThreadItemFileChange {
		end := protocol.PatchApplyEnd{CallID: it.ID, Success: it.Status == apptypes.PatchApplyStatusCompleted}
		if end.Success {
			end.Stdout = patchSummary(it.Changes)
		}
		r.host.Emit(end)
		return
	}
	code := -1
	if it.ExitCode != nil {
		code = int(*it.ExitCode)
	}
	r.host.Emit(protocol.ExecCommandEnd{
		CallID: it.ID, Stdout: it.AggregatedOutput, AggregatedOutput: it.AggregatedOutput,
		FormattedOutput: it.AggregatedOutput, ExitCode: code, Duration: milliseconds(it.DurationMs),
	})
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
		if r.seen.coming.Len() > 0 {
			answer = new(r.seen.coming.String())
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
	if kind, _ := appclient.ErrorKind(e); kind == apptypes.CodexErrorInfoUsageLimitExceeded || kind == apptypes.CodexErrorInfoRateLimitExceeded {
		if limits := limitsOf(r.thread.child.limits.Load()); limits != nil {
			words += "\nlimits of the account: " + limits.Words()
		}
	}
	return r.fail(words)
}

// incomplete begins Codex's message about a response that the provider cut off.
const incomplete = "Incomplete response returned, reason: "

// redact hides keys in an error.
func (r *turn) redact(s string) string {
	if r.thread == nil {
		return redact(s)
	}
	return r.thread.child.redact(s)
}

// fail ends the turn as failed.
func (r *turn) fail(msg string) error {
	msg = r.redact(msg)
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
func (r *turn) answer() *string { return cmp.Or(r.seen.final, r.seen.last) }

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

// past returns the events of a thread's earlier turns.
func past(turns []apptypes.Turn) (all []stdjson.RawMessage) {
	for _, t := range turns {
		for _, raw := range t.Items {
			var it apptypes.Item
			if json.Unmarshal(raw, &it) != nil {
				continue
			}
			for _, m := range said(&it) {
				if b, err := protocol.AppendEvent(nil, m); err == nil {
					all = append(all, b)
				}
			}
		}
	}
	return all
}
