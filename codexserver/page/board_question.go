package page

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// The bounds of open questions.
const (
	maxOpen      = 64
	maxQuestion  = 4 << 20 // bytes of one
	maxFiles     = 2000    // of one; more make a browser slow
	maxOpenBytes = 32 << 20
)

// A question is open from Ask to Decided. The board keeps it as long as its entry.
type question struct {
	conversation *conversation
	entry        *entry
	request      *approval.Request
	answered     chan json.RawMessage // buffered; its sender has set State before
}

// end is how a question ended, as far as the page knows.
type end struct {
	// State is "open", "answered" or "withdrawn" until the decision is known, and
	// then "decided".
	State string `json:"state"`
	// Decision is the decision once State is "decided".
	Decision elicit.Decision `json:"decision,omitzero"`
	// By names who decided.
	By approval.Decider `json:"by,omitzero"`
	// Reason is why the decision is not a plain approval.
	Reason elicit.Reason `json:"reason,omitzero"`
	// Rule says what the rule allows that was accepted with the decision.
	Rule string `json:"rule,omitzero"`
	// Feedback is the text that the agent receives.
	Feedback string `json:"feedback,omitzero"`
}

const (
	stateOpen      = "open"
	stateAnswered  = "answered"
	stateWithdrawn = "withdrawn"
	stateDecided   = "decided"
)

var (
	errTooMany = errors.New("page: too many open questions")
	errTooLong = errors.New("page: the question is too long to be shown")
)

// ask puts a question on the board.
func (b *board) ask(ctx context.Context, r *approval.Request) (*question, error) {
	view := viewQuestion(r)
	view.end = end{State: stateOpen}
	if deadline, ok := ctx.Deadline(); ok {
		view.Deadline = deadline.UnixMilli()
	}
	size := view.size()
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conversation(r.Thread)
	switch {
	case size > maxQuestion, len(view.Files) > maxFiles, b.openBytes+size > maxOpenBytes:
		b.add(c, &entry{Kind: kindError, body: text("A question is too long to be shown here whole. Only the client can answer it.")})
		return nil, errTooLong
	case len(b.byRequest) >= maxOpen:
		return nil, errTooMany
	}
	if view.Kind == "patch" {
		c.folder = view.Cwd
	}
	q := &question{conversation: c, request: r, answered: make(chan json.RawMessage, 1)}
	b.openBytes += size
	q.entry = &entry{Kind: kindQuestion, Question: view}
	b.add(c, q.entry)
	b.questions[q.entry.ID] = q
	b.byRequest[r] = q
	return q, nil
}

// answer passes an answer to the Ask that waits for it. If the question is no longer
// open, it returns how it ended instead. It returns false if it does not know the
// question.
func (b *board) answer(id int, raw json.RawMessage) (*end, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil {
		return nil, false
	}
	if how := q.entry.Question.end; how.State != stateOpen {
		return &how, true
	}
	b.finish(q, end{State: stateAnswered})
	q.answered <- raw
	return nil, true
}

// withdraw takes a question back and returns cause. If it has just been answered, it
// returns the answer.
func (b *board) withdraw(q *question, cause error) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case raw := <-q.answered:
		return raw, nil
	default:
	}
	if q.entry.Question.State == stateOpen {
		b.finish(q, end{State: stateWithdrawn})
	}
	return nil, cause
}

// decided shows how a question ended, including one that the page was never asked.
func (b *board) decided(r *approval.Request, how end) {
	b.mu.Lock()
	q := b.byRequest[r]
	if q != nil {
		delete(b.byRequest, r)
		b.finish(q, how)
	}
	b.mu.Unlock()
	if q != nil {
		return
	}
	view := viewQuestion(r).brief()
	view.end = how
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(b.conversation(r.Thread), &entry{Kind: kindQuestion, Question: view})
}

// finish changes the state of a question that stays on the board.
func (b *board) finish(q *question, how end) {
	view := *q.entry.Question
	if how.State == stateDecided {
		b.openBytes -= view.size()
		view = *view.brief()
	}
	view.end = how
	q.entry.Question = &view
	b.touch(q.conversation, q.entry)
}
