package mcp

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// inbox has the questions of a call, or of the task that it is: they go to the client in results, and
// later requests have the answers. The mutex of the call guards it, but for what does not change.
type inbox struct {
	slots  slots.Slots // limit the open questions
	canAsk bool        // the client of the first request can be asked
	life   int         // how many servers have had the call before

	open   map[string]*question // by key
	keys   int                  // how many questions there were
	rounds int                  // how many results had questions
}

// question is an open question of a call.
type question struct {
	request  stdjson.RawMessage // of elicitation/create, as it is sent
	answered chan struct{}      // closed with the answer
	sent     time.Time          // with the first result that had it; zero before
	took     time.Duration      // from sent to the answer
	answer   stdjson.RawMessage // nil if the client cannot be asked
}

// requests returns the open questions for the client, which gets them now. The caller holds the mutex.
func (b *inbox) requests() modern.InputRequests {
	requests := modern.InputRequests{}
	for key, open := range b.open {
		requests[key] = &modern.Unknown{Raw: open.request} // which is written as it is
		if open.sent.IsZero() {
			open.sent = time.Now()
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
		clear(c.inbox.open)
	})
}

// take answers open questions. It ignores unknown keys, those of questions that were not sent, second answers and those
// that are too late.
func (c *call) take(answers map[string]jsontext.Value) {
	c.update(func() {
		for key, answer := range answers {
			open := c.inbox.open[key]
			if open == nil || open.sent.IsZero() {
				continue
			}
			open.answer, open.took = stdjson.RawMessage(answer.Clone()), time.Since(open.sent)
			close(open.answered)
			delete(c.inbox.open, key)
		}
	})
}

// exchange opens the question of an elicitation/create request that build makes for the client, and waits for
// its answer. A question that has no answer in time ends the call if the client is gone.
func (c *call) exchange(ctx context.Context, build func(elicit.Client) (stdjson.RawMessage, error)) (*question, error) {
	c.session.calls.mu.Lock()
	client := c.client
	c.session.calls.mu.Unlock()
	request, err := build(client)
	if err == nil { // one that a client could not read would fail the whole result, and nobody would answer
		err = new(modern.ElicitRequest).UnmarshalJSON(request)
	}
	if err != nil {
		return nil, err
	}
	leave, err := c.inbox.slots.Take(ctx)
	if err != nil {
		return nil, ctx.Err()
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, approve.MaxOpen)
	defer cancel()
	b, key := &c.inbox, ""
	q := &question{request: request, answered: make(chan struct{})}
	c.update(func() {
		b.keys++
		key = "q" + strconv.Itoa(b.keys)
		if b.life > 0 { // an answer to a question of the server before is none to this one
			key = fmt.Sprintf("q%d.%d", b.life+1, b.keys)
		}
		b.open[key] = q
	})
	select {
	case <-q.answered:
	case <-ctx.Done():
	}
	open := false // and so without an answer
	c.update(func() {
		_, open = b.open[key]
		late := open && errors.Is(ctx.Err(), context.DeadlineExceeded)
		if late && c.outlet.to == nil && !c.alone && c.turn != nil {
			c.cancel(errNoAnswer)
		}
		delete(b.open, key)
	})
	switch {
	case open:
		return nil, ctx.Err()
	case q.answer == nil:
		return nil, elicit.ErrUnsupported
	}
	return q, nil
}

// ask asks the client. The question is sent in the result of a request.
func (c *call) ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	o := &c.session.server.Approvals
	if r.Subject.Effect() == approval.Overrules { // the call would wait for the answer, and its turn does not
		return r.Question.ReadError(elicit.ErrUnsupported, o), nil
	}
	var asked *elicit.Question
	q, err := c.exchange(ctx, func(client elicit.Client) (stdjson.RawMessage, error) {
		asked = r.Question.For(client, o)
		return asked.InputRequest(client, o)
	})
	switch {
	case err == nil:
		out := asked.ReadInputResponse(q.answer, o)
		out.Took = q.took
		return out, nil
	case errors.Is(err, elicit.ErrUnsupported),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return r.Question.ReadError(err, o), nil
	}
	return elicit.Outcome{}, err
}

// elicit asks a question of another party.
func (c *call) elicit(ctx context.Context, f *approval.Foreign) (stdjson.RawMessage, error) {
	if c.over() {
		return nil, elicit.ErrUnsupported // the turn continues in the background
	}
	ctx, cancel := c.session.server.Approvals.WithTimeout(ctx) // the board limits those of the engine
	defer cancel()
	q, err := c.exchange(ctx, func(client elicit.Client) (stdjson.RawMessage, error) {
		return f.Question().InputRequest(client, nil)
	})
	if err != nil {
		return nil, err
	}
	return f.Read(q.answer), nil
}
