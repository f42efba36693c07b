package turn

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Result is how a turn has ended.
type Result struct {
	protocol.TurnResult // whole but for its content: what is sent is fitted
	// Said is what the model has said.
	Said Said
	// Texts are the answer, or why there is none, and the remarks for the caller.
	Texts []string
	// More is true if codex-show has more of the answer than the texts.
	More bool
	// Fails is true if the turn failed, or was aborted but for its budget.
	Fails bool

	where string // the whole answer is, for [Result.Cut]
}

// broken is the result of a turn whose result cannot be made.
func broken(thread string) *Result {
	const words = "internal error: the turn panicked"
	failed := protocol.TurnResult{ThreadID: thread, Status: protocol.StatusFailed, Content: words}
	return &Result{TurnResult: failed, Texts: []string{words}, Fails: true}
}

// Result returns how the turn has ended, the zero value before.
func (t *Turn) Result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.result == nil {
		return Result{}
	}
	return *t.result
}

// conclude makes the result of a turn that ends with err and has changed what was found, in a worktree or none. It holds the lock, so Order.Read
// must not call the turn.
func (t *Turn) conclude(err error, found *changes.Found, tree *protocol.Worktree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.folder.found = found; !t.time.began.IsZero() {
		t.time.duration = time.Since(t.time.began)
	}
	spent, _ := errors.AsType[*SpentError](err)
	result, spoken := t.so(), t.answer.Said
	spoken.Coming = t.answer.coming.String()
	if t.form.missing != nil && err != nil {
		spoken.Coming = spoken.Text
	}
	formed := t.output(&result, err)
	answer, hidden := "", ""
	result.Status, answer, hidden = t.told(spoken, err, spent)
	if result.Status == protocol.StatusCompleted && !formed {
		result.Status = protocol.StatusIncomplete
	}
	if c := &result.Check; c.Command != "" {
		t.remark(checked(c))
		if result.Status == protocol.StatusCompleted && (c.Passed == nil || !*c.Passed) {
			result.Status = protocol.StatusIncomplete
		}
	}
	if found.Untold != "" {
		t.remark(found.Untold)
	}
	if spent == nil { // the work was done before
		spent, _ = errors.AsType[*SpentError](t.form.missing)
	}
	if spent != nil {
		result.Stopped = plain.Short(spent.Error(), plain.MaxWords)
	}
	if t.Order.Read != nil {
		answer, err = t.Order.Read(answer, &result, err)
	}
	r := &Result{Said: spoken, where: t.where(), Fails: err != nil && spent == nil}
	r.Texts = append([]string{r.Cut(answer, t.Order.Most)}, t.remarks...)
	for i, one := range result.Refused { // each reason stands once: some remarks begin with one
		why := strings.ToLower(strings.TrimPrefix(one.Why, "not run: "))
		begins := func(words string) bool { return strings.HasPrefix(strings.ToLower(words), why) }
		if slices.ContainsFunc(t.remarks, begins) {
			result.Refused[i].Why = ""
		}
	}
	result.ThreadID, result.Worktree = plain.Short(t.ThreadID(), plain.MaxName), tree
	result.Content = cmp.Or(hidden, strings.Join(r.Texts, "\n\n"))
	if t.Order.Shows {
		result.Truncated.See = "codex-show has the rest"
		r.More = r.Texts[0] != answer
	}
	r.TurnResult = result
	t.concluded = r
}

// told returns, for a caller that holds t.mu, how a turn ended, and the answer or why there is none. Hidden is for the structured content
// alone, in place of the text.
func (t *Turn) told(spoken Said, err error, spent *SpentError) (status protocol.TurnStatus, text, hidden string) {
	text, lacks, coming, until := spoken.Text, spoken.Lacks, strings.TrimSpace(spoken.Coming), ""
	if coming != "" {
		until = "\n\nThe answer until then:\n\n" + coming
	}
	var abort *engine.AbortError
	switch {
	case spent != nil:
		words := "The turn was stopped: " + spent.Error() + ". What it has changed stays."
		if last := strings.TrimSpace(cmp.Or(coming, spoken.Last)); last != "" {
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
	words := "The answer is incomplete: " + lacks + "."
	switch {
	case t.Order.Read != nil && text == "": // which says so
	case lacks == protocol.EmptyAnswer:
		hidden = words
	case text == "":
		text = words
	default:
		t.remark(words)
	}
	return protocol.StatusIncomplete, text, hidden
}

// ClientGone is why a turn was aborted whose client has gone.
const ClientGone = "the client closed the connection"

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(cmp.Or(e.Reason, protocol.AbortInterrupted))
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return ClientGone
	}
	return strings.Replace(e.Cause.Error(), jsonrpc.ErrCancelled.Error(), "the client cancelled the call", 1)
}

// where says where the whole answer is. The caller holds t.mu.
func (t *Turn) where() string {
	switch path := t.place.rollout; {
	case t.Order.Shows:
		return "codex-show has the whole answer, in the transcript"
	case path != "":
		return "the whole answer is in " + path
	}
	return "the answer is longer than limits.result"
}

// Cut shortens a text with the answer to most bytes of JSON, with a note where to read the whole one. 0 is no limit.
func (r *Result) Cut(s string, most int) string {
	if most == 0 || text.SizeJSON(s) <= most {
		return s
	}
	note := "\n\n[cut: " + r.where + "]"
	return text.HeadJSON(s, most-text.SizeJSON(note)+len(`""`)) + note
}

// Did returns what the turn has done until now, as the result of a turn that was aborted. It has
// no content, no output of the check, and at most [protocol.MinResult] bytes of JSON.
func (t *Turn) Did() protocol.TurnResult {
	r := t.So()
	r.ThreadID, r.Content, r.Check.Output = t.ThreadID(), "", ""
	if r.Status == "" || !r.Status.Ended() {
		r.Status = protocol.StatusAborted
	}
	r.Fit(protocol.MinResult)
	return r
}
