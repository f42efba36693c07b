package tools

import (
	"cmp"
	"errors"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// outcome is how a turn has ended.
type outcome struct {
	did     protocol.TurnResult // whole: what is sent is fitted
	call    *mcptypes.CallToolResult
	cut     bool // the texts of call have only the beginning of the message
	remarks int  // how many of the log call has
}

// conclude makes the result of a turn that ended with err. Spent is the budget that stopped it, or nil.
func (t *Turn) conclude(err error, spent *turn.SpentError) {
	if err == nil && maxTokens(t.resume.Budget) > 0 && t.log.Tokens() == 0 {
		t.log.Remark("The budget of tokens was not held: the model's provider does not count them.")
	}
	did := t.log.So()
	did.Output, did.Worktree = t.output(err), t.resume.shownTree()
	var text, hidden string
	did.Status, text, hidden = t.answer(err, spent)
	if words := t.log.Untold(); words != "" {
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
	texts := append([]string{t.form.cut(text, t.form.room.most, t.thread)}, remarks...)
	did.ThreadID, did.Content = show.Text(t.thread.ID(), maxName), cmp.Or(hidden, joined(texts))
	if t.form.room.shows {
		did.Truncated.See = "codex-show has the rest"
	}
	r := &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: did.JSON(t.form.room.most)}
	t.outcome = outcome{cut: texts[0] != text, did: did, call: r, remarks: len(remarks)}
	lines := append([]string{t.named(t.outcome.cut)}, notDone(&did)...)
	if err != nil && spent == nil {
		lines, r.IsError = append(lines, facts(did)), new(true)
	}
	forModel(r, lines...)
}

// answer returns how a turn ended, and the answer or why there is none. Hidden is for the structured content
// alone, in place of the text.
func (t *Turn) answer(err error, spent *turn.SpentError) (status protocol.TurnStatus, text, hidden string) {
	text, lacks := t.log.Answer()
	var abort *engine.AbortError
	switch {
	case spent != nil:
		return protocol.StatusAborted, spentWords(spent, cmp.Or(t.log.Said())), ""
	case errors.As(err, &abort):
		return protocol.StatusAborted, "Turn aborted: " + abortCause(abort) + t.soFar(), ""
	case err != nil:
		return protocol.StatusFailed, err.Error() + t.soFar(), ""
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

// named returns the hint of a turn that has ended.
func (t *Turn) named(cut bool) string {
	return hint(t.ThreadID(), &t.outcome.did, cut && t.form.room.shows)
}

// soFar returns what was written of a message that the end of the turn cut off.
func (t *Turn) soFar() string {
	if text, _ := t.log.Said(); strings.TrimSpace(text) != "" {
		return "\n\nThe answer until then:\n\n" + strings.TrimSpace(text)
	}
	return ""
}

// output returns the answer of a turn that ended with err as JSON, or nil if there is no
// schema. If the answer does not match the schema, it adds a remark.
func (t *Turn) output(err error) jsontext.Value {
	if err != nil || t.form.schema == nil {
		return nil
	}
	text, _ := t.log.Answer()
	value, fault := t.form.schema.Check(text)
	if fault != nil {
		t.log.Remark("The answer does not fit output-schema: " + fault.Error())
	}
	return value
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
	r := short{ThreadID: t.ThreadID(), Status: status, Worktree: t.resume.Worktree}.result(text)
	forModel(r, hint(t.ThreadID(), nil, false))
	return r
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

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// spentWords returns the text of a turn that its budget stopped: the reason and the agent's last message.
func spentWords(e *turn.SpentError, last string) string {
	words := "The turn was stopped: " + e.Error() + ". What it has changed stays; codex-reply continues."
	if last = strings.TrimSpace(last); last != "" {
		words += " The last message:\n\n" + last
	}
	return words
}
