package mcp

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// inbox has the questions of a call, or of the task that it is: they go to the client in results, and
// later requests have the answers. The mutex of the call guards it, but for what does not change.
type inbox struct {
	slots  *elicit.Slots // limit the open questions
	canAsk bool          // the client of the first request can be asked
	life   int           // how many servers have had the call before

	open    []*question                  // in order of arrival
	keys    int                          // how many questions there were
	rounds  int                          // how many results had questions
	expired map[string]*approval.Request // by the keys of those that had no answer in time
}

// question is an open question of a call.
type question struct {
	key      string
	request  stdjson.RawMessage // of elicitation/create, as it is sent
	answered chan struct{}      // closed with the answer
	sent     time.Time          // with the first result that had it; zero before
	took     time.Duration      // from sent to the answer
	answer   stdjson.RawMessage // nil if the client cannot be asked
}

// slots returns how many questions of a call may be open at a time.
func (s *Server) slots() *elicit.Slots {
	return elicit.NewSlots(cmp.Or(s.Approvals.MaxPending, elicit.DefaultMaxPending))
}

// requests returns the open questions for the client, which gets them now. The caller holds c.mu.
func (b *inbox) requests() modern.InputRequests {
	requests := modern.InputRequests{}
	for _, one := range b.open {
		requests[one.key] = &modern.Unknown{Raw: one.request} // which is written as it is
		if one.sent.IsZero() {
			one.sent = time.Now()
		}
	}
	return requests
}

// refuse answers the open questions for a client that cannot show them.
func (c *call) refuse() {
	c.update(func() {
		for _, one := range c.inbox.open {
			close(one.answered)
		}
		c.inbox.open = nil
	})
}

// take answers open questions. It ignores unknown keys, keys that are not in keys unless that is nil, and
// second answers. The caller of the turn learns of answers that are too late, once.
func (c *call) take(keys []string, answers map[string]jsontext.Value) {
	b := &c.inbox
	var late []*approval.Request
	c.update(func() {
		for key, answer := range answers {
			if keys != nil && !slices.Contains(keys, key) {
				continue
			}
			if !b.answer(key, answer) && b.expired[key] != nil {
				late = append(late, b.expired[key])
				delete(b.expired, key)
			}
		}
	})
	for _, r := range late {
		c.session.turns.AnsweredLate(r, false)
	}
}

// answer answers the open question with a key. It reports whether there was one.
func (b *inbox) answer(key string, answer jsontext.Value) bool {
	i := slices.IndexFunc(b.open, func(one *question) bool { return one.key == key })
	if i < 0 {
		return false
	}
	one := b.open[i]
	one.answer = stdjson.RawMessage(answer.Clone())
	if !one.sent.IsZero() {
		one.took = time.Since(one.sent)
	}
	close(one.answered)
	b.open = slices.Delete(b.open, i, i+1)
	return true
}

// open opens the question of an elicitation/create request.
func (c *call) open(request stdjson.RawMessage) *question {
	one := &question{request: request, answered: make(chan struct{})}
	c.update(func() {
		c.inbox.keys++
		one.key = "q" + strconv.Itoa(c.inbox.keys)
		if c.inbox.life > 0 { // an answer to a question of the server before is none to this one
			one.key = fmt.Sprintf("q%d.%d", c.inbox.life+1, c.inbox.keys)
		}
		c.inbox.open = append(c.inbox.open, one)
	})
	return one
}

// withdraw closes a question for r, or nil. It reports whether it was open, and so has no answer.
func (c *call) withdraw(one *question, expired bool, r *approval.Request) (open bool) {
	b := &c.inbox
	c.update(func() {
		i := slices.Index(b.open, one)
		if open = i >= 0; !open {
			return
		}
		b.open = slices.Delete(b.open, i, i+1)
		if expired && r != nil {
			if b.expired == nil {
				b.expired = map[string]*approval.Request{}
			}
			b.expired[one.key] = r
		}
	})
	return open
}

// exchange opens the question of an elicitation/create request that build makes for the client, and waits for
// its answer. R is what is to be approved, nil for a question of another party. A question that has no answer in
// time ends the call if the client is gone.
func (c *call) exchange(ctx context.Context, r *approval.Request, build func(elicit.Client) (stdjson.RawMessage, error)) (q *question, err error) {
	c.mu.Lock()
	client := c.attached.client
	c.mu.Unlock()
	request, err := build(client)
	if err == nil { // one that a client could not read would fail the whole result, and nobody would answer
		err = new(modern.ElicitRequest).UnmarshalJSON(request)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) {
			c.expire()
		}
	}()
	if err := c.inbox.slots.Acquire(ctx); err != nil {
		return nil, err
	}
	defer c.inbox.slots.Release()
	if r == nil { // the board limits the others
		var cancel context.CancelFunc
		ctx, cancel = c.session.server.Approvals.WithTimeout(ctx)
		defer cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, approve.MaxOpen)
	defer cancel()
	q = c.open(request)
	select {
	case <-q.answered:
	case <-ctx.Done():
	}
	if c.withdraw(q, errors.Is(ctx.Err(), context.DeadlineExceeded), r) {
		return nil, ctx.Err()
	}
	if q.answer == nil {
		return nil, elicit.ErrUnsupported
	}
	return q, nil
}

// ask asks the client. The question is sent in the result of a request.
func (c *call) ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	o := &c.session.server.Approvals
	var asked *elicit.Question
	q, err := c.exchange(ctx, r, func(client elicit.Client) (stdjson.RawMessage, error) {
		asked = r.Question.For(client, o)
		return asked.InputRequest(client, o)
	})
	switch {
	case err == nil:
		out := asked.ReadInputResponse(q.answer, o)
		out.Took = q.took
		return out, nil
	case errors.Is(err, elicit.ErrUnsupported), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return r.Question.ReadError(err, o), nil
	}
	return elicit.Outcome{}, err
}

// elicit asks a question of another party.
func (c *call) elicit(ctx context.Context, f *elicit.Foreign) (stdjson.RawMessage, error) {
	if c.over() {
		return nil, elicit.ErrUnsupported // the turn continues in the background
	}
	q, err := c.exchange(ctx, nil, f.InputRequest)
	if err != nil {
		return nil, err
	}
	return f.Read(q.answer), nil
}

// expire interrupts the turn if no client waits for it.
func (c *call) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.attached.waits && !c.attached.alone && c.turn != nil {
		c.cancel(errNoAnswer)
	}
}
