package tools

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of what a result says besides the answer. Some hosts show 2 kB of a block.
const (
	maxHints   = 20   // threads that one block names
	maxNotDone = 10   // lines about what was not done; the structured content has all
	maxBrief   = 200  // characters of a status line
	maxName    = 100  // bytes of names and ids, which a result never cuts
	maxTree    = 2000 // bytes of the path of a worktree, as well
)

// outcome is how a turn has ended.
type outcome struct {
	did     protocol.TurnResult // whole: what is sent is fitted
	call    *mcptypes.CallToolResult
	more    bool // codex-show has more of the answer than the texts of call
	remarks int  // how many of the log call has
}

// maxResult returns how many bytes of JSON the answer in a result of the call has at most, and the structured content.
func (c *Call) maxResult() int {
	most := cmp.Or(max(c.table.options.MaxResult, 0), setting.DefaultResult)
	if c.MaxText > 0 {
		most = min(most, c.MaxText)
	}
	return most
}

// shows reports whether codex-show has what a result leaves out.
func (t *Turn) shows() bool { return t.table.Has(showTool.name) }

// conclude makes the result of a turn that ended with err.
func (t *Turn) conclude(err error) {
	spent, _ := errors.AsType[*turn.SpentError](err)
	did := t.log.So()
	if err == nil && t.resume.Schema != nil {
		schema, fault := outputschema.Compile([]byte(t.resume.Schema)) // as before the turn
		if fault == nil {
			did.Output, fault = schema.Check(t.log.Said().Text)
		}
		if fault != nil {
			t.log.Remark("The answer does not fit output-schema: " + fault.Error())
		}
	}
	var text, hidden string
	did.Status, text, hidden = t.answer(err, spent)
	if words := t.log.Found().Untold; words != "" {
		t.log.Remark(words)
	}
	if spent != nil {
		did.Stopped = show.Text(spent.Error(), show.MaxWords)
	}
	if t.review != nil && err == nil {
		if text, err = t.review.end(text, &did); err != nil {
			did.Status, text = protocol.StatusFailed, "codex-review: "+err.Error()
		}
	}
	remarks := t.log.Remarks()
	texts := append([]string{t.cut(text, t.most)}, remarks...)
	did.ThreadID, did.Worktree = show.Text(t.thread.ID(), maxName), t.resume.Worktree
	did.Content = cmp.Or(hidden, joined(texts))
	if t.shows() {
		did.Truncated.See = "codex-show has the rest"
	}
	r := &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: did.JSON(t.most)}
	t.outcome = outcome{more: t.shows() && texts[0] != text, did: did, call: r, remarks: len(remarks)}
	lines := append([]string{hint(t.ThreadID(), &did, t.outcome.more)}, notDone(&did)...)
	if err != nil && spent == nil {
		// Claude Code does not show its model the structured content of an error, and shows only the first and the
		// last 5,000 characters of the texts. So this is in the last block, and shorter, without what is before.
		did.Content = ""
		lines, r.IsError = append(lines, string(did.JSON(protocol.MinResult))), new(true)
	}
	forModel(r, lines...)
}

// answer returns how a turn ended, and the answer or why there is none. Hidden is for the structured content
// alone, in place of the text.
func (t *Turn) answer(err error, spent *turn.SpentError) (status protocol.TurnStatus, text, hidden string) {
	said, until := t.log.Said(), ""
	text, lacks, coming := said.Text, said.Lacks, strings.TrimSpace(said.Coming)
	if coming != "" {
		until = "\n\nThe answer until then:\n\n" + coming
	}
	var abort *engine.AbortError
	switch {
	case spent != nil:
		words := "The turn was stopped: " + spent.Error() + ". What it has changed stays; codex-reply continues."
		if last := strings.TrimSpace(cmp.Or(coming, said.Last)); last != "" {
			words += " The last message:\n\n" + last
		}
		return protocol.StatusAborted, words, ""
	case errors.As(err, &abort):
		return protocol.StatusAborted, "Turn aborted: " + abortCause(abort) + until, ""
	case err != nil:
		return protocol.StatusFailed, err.Error() + until, ""
	case lacks == "":
		return protocol.StatusCompleted, text, ""
	}
	words := "The answer is incomplete: " + lacks + ". codex-reply continues, for example with \"continue\"."
	switch {
	case t.review != nil && text == "": // its end says so
	case lacks == protocol.EmptyAnswer:
		hidden = words
	case text == "":
		text = words
	default:
		t.log.Remark(words)
	}
	return protocol.StatusIncomplete, text, hidden
}

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(cmp.Or(e.Reason, protocol.AbortInterrupted))
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return clientGone
	}
	return strings.Replace(e.Cause.Error(), jsonrpc.ErrCancelled.Error(), "the client cancelled the call", 1)
}

const clientGone = "the client closed the connection"

// hint returns a line that names a thread for the client's model, and says what to call next. Without it a
// model that sees only the texts of a result could not continue the conversation.
// did is what the turn did, or nil before its end. more is true if codex-show has more of the
// answer.
func hint(thread string, did *protocol.TurnResult, more bool) string {
	if did == nil {
		return "[thread " + thread + "; codex-wait waits for it]"
	}
	words := "thread " + thread + "; codex-reply continues it"
	if more {
		words += "; codex-show has the whole answer"
	}
	if changed := show.Changes(did.Changes); changed != "" {
		words += "; changed: " + changed
	}
	return "[" + words + "]"
}

// notDone returns a line for each of the last things that a turn did not do because nobody approved
// them or a policy refuses them. Models of many hosts see only the texts of a result.
func notDone(did *protocol.TurnResult) []string {
	var lines []string
	left := did.Truncated.Refused
	for _, r := range slices.Backward(did.Refused) {
		r.What, _ = elicit.ShowCode(r.What)
		if r.Kind == "patch" {
			r.What = "changes of " + r.What
		}
		r.Why = show.Brief(strings.TrimPrefix(r.Why, "not run: "))
		line := "N" + strings.TrimPrefix(r.String(), "n") // such as "Not run: `git push` (declined)"
		switch {
		case slices.Contains(lines, line):
		case len(lines) == maxNotDone:
			left++
		default:
			lines = append(lines, line)
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("Earlier refusals that are not listed here: %d.", left))
	}
	slices.Reverse(lines)
	return lines
}

// Afterwards returns what the caller of a turn should know and its result does not say.
func (t *Turn) Afterwards() []string {
	if !t.over() {
		return nil
	}
	return t.log.Remarks()[t.outcome.remarks:]
}

// WithAfterwards returns the structured content of the result with the words of [Turn.Afterwards], at most
// most bytes. Some hosts pass on nothing else.
func (t *Turn) WithAfterwards(most int) jsontext.Value {
	did := t.outcome.did
	did.Content = joined(append([]string{did.Content}, t.Afterwards()...))
	return did.JSON(most)
}

// Interim returns the result for a caller that leaves before the end: the state and an
// advice.
func (t *Turn) Interim(advice string) *mcptypes.CallToolResult {
	s := t.State()
	return t.interim(s.Status, s.Words()+" "+advice)
}

// interim returns the result of a call whose turn continues.
func (t *Turn) interim(status protocol.TurnStatus, text string) *mcptypes.CallToolResult {
	r := structured(short{ThreadID: t.ThreadID(), Content: text, Status: status, Worktree: t.resume.Worktree}, text)
	forModel(r, hint(t.ThreadID(), nil, false))
	return r
}

// still returns the result of a call that ends before its turn: what the turn does and has
// done, and the question that it waits for. It returns nil if the turn has ended.
func (t *Turn) still(c *Call) *mcptypes.CallToolResult {
	s, did := t.State(), t.log.So()
	words := "Still running: " + s.Words() + ". "
	switch asked := c.place() != nil; {
	case s.Status.Ended():
		return nil
	case s.Status == protocol.StatusRunning:
	case asked && c.Background.Ask != nil:
		words = "Still running, and " + s.Words() + ". The client still has the question. "
	case asked:
		words = "Still running, and " + s.Words() + ". codex-wait asks it again. "
	default:
		words = "Still running, and " + s.Words() + ". A person has to answer it where this server asks, not in this client. "
	}
	did.ThreadID, did.Status = t.ThreadID(), s.Status
	if len(did.Commands)+len(did.Changes) > 0 {
		words += "Until now " + doneUntil(&did)
		if changed := show.Changes(did.Changes); changed != "" {
			words += ": " + changed
		}
		words += ". "
	}
	words += "The turn continues in the background: call codex-wait with threadIds [\"" + t.ThreadID() + "\"] for its result."
	did.Content = words
	r := t.interim(s.Status, words)
	r.StructuredContent = did.JSON(protocol.MinResult)
	return r
}

// Ended returns the result of a task whose server ended while the task ran, and what it did as
// a line. did is what [Turn.Did] returned last, or nil.
func Ended(thread string, did jsontext.Value) (r *mcptypes.CallToolResult, line string) {
	const begin, end = "The server ended while this task ran. What it did until then remains", ". Call codex-reply with threadId "
	var before protocol.TurnResult
	if json.Unmarshal(did, &before) != nil {
		return failure(thread, begin+end+thread+" to continue."), ""
	}
	line = doneUntil(&before)
	before.Content = begin + ": " + line + end + thread + " to continue."
	r = &mcptypes.CallToolResult{Content: blocks(before.Content), StructuredContent: before.JSON(setting.DefaultResult), IsError: new(true)}
	forModel(r, string(did))
	return r, line
}

// doneUntil returns how many commands ran and how many files changed.
func doneUntil(r *protocol.TurnResult) string {
	many := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	return many(len(r.Commands)+r.Truncated.Commands, "command") + " ran and " + many(len(r.Changes)+r.Truncated.Changes, "file") + " changed"
}

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// failure returns the result of a call that failed before it had a turn.
func failure(thread, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	r.IsError = new(true)
	return r
}

// short is the structured content of a call that has no result of a turn.
type short struct {
	ThreadID string              `json:"threadId"`
	Content  string              `json:"content"`
	Status   protocol.TurnStatus `json:"status,omitzero"`
	Worktree *protocol.Worktree  `json:"worktree,omitzero"`
}

// result returns the result of a call about a thread.
func result(thread, text string) *mcptypes.CallToolResult {
	return structured(short{ThreadID: thread, Content: text}, text)
}

// structured returns a result with v as structured content, because some clients show only that to their model, and
// the texts, or else v, as blocks. Structured content came with MCP 2025-06-18. It is also
// sent under earlier versions, as Codex did: clients find the thread's id there.
func structured(v any, texts ...string) *mcptypes.CallToolResult {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return failure("", "internal error: "+err.Error())
	}
	if texts == nil {
		texts = []string{string(b)}
	}
	return &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: b}
}

// blocks returns the texts as blocks. The first is unchanged. Each further one begins with a
// newline, because some clients join the blocks without a separator.
func blocks(texts ...string) []mcptypes.ContentBlock {
	list := mcptypes.Text(texts...)
	for i, text := range texts[1:] {
		list[i+1] = &mcptypes.TextContent{Text: "\n" + text}
	}
	return list
}

// forModel adds a block of lines for the model, if there are any. Some clients join the blocks
// without a separator, and some show only the beginning of each.
func forModel(r *mcptypes.CallToolResult, lines ...string) {
	if len(lines) == 0 {
		return
	}
	r.Content = append(r.Content, &mcptypes.TextContent{
		Annotations: &mcptypes.Annotations{Audience: []mcptypes.Role{mcptypes.RoleAssistant}},
		Text:        "\n" + strings.Join(lines, "\n"),
	})
}

// joined joins the texts with empty lines.
func joined(texts []string) string { return strings.Join(texts, "\n\n") }

// cut shortens the text to most bytes of JSON, with a note where to read the whole text.
func (t *Turn) cut(s string, most int) string {
	if text.SizeJSON(s) <= most {
		return s
	}
	path, note := t.thread.Info().RolloutPath, "the answer is longer than limits.result"
	switch {
	case path != "" && t.shows():
		note = "the whole answer is in " + path + ", and codex-show has it, in the transcript"
	case path != "":
		note = "the whole answer is in " + path
	case t.shows():
		note = "codex-show has the whole answer, in the transcript"
	}
	note = "\n\n[cut: " + note + "]"
	return text.HeadJSON(s, most-text.SizeJSON(note)+len(`""`)) + note
}
