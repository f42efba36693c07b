package modern

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxOpen is how long a question without a timeout stays open if no client answers it.
const maxOpen = 24 * time.Hour

// question is an open question of a call.
type question struct {
	key     string
	request modern.InputRequest
	answer  chan stdjson.RawMessage // for the first answer; nil if the client cannot be asked
}

// ask opens a question and waits for its answer, or until ctx ends.
func (c *call) ask(ctx context.Context, params stdjson.RawMessage) (stdjson.RawMessage, error) {
	request, err := inputRequest(params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxOpen)
	defer cancel()
	q := &question{request: request, answer: make(chan stdjson.RawMessage, 1)}
	c.mu.Lock()
	c.keys++
	q.key = "q" + strconv.Itoa(c.keys)
	c.questions = append(c.questions, q)
	c.change()
	c.mu.Unlock()
	defer c.withdraw(q)
	var answer stdjson.RawMessage
	select {
	case answer = <-q.answer:
	case <-ctx.Done():
		select {
		case answer = <-q.answer: // taken before the end
		default:
			return nil, ctx.Err()
		}
	}
	if answer == nil {
		return nil, elicit.ErrUnsupported
	}
	return answer, nil
}

// refuse answers the open questions for a client that cannot be asked: its newest request
// does not declare elicitation.
func (c *call) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.questions {
		q.answer <- nil
	}
	c.questions = nil
	c.change()
}

// withdraw closes a question. It does nothing if the question was answered.
func (c *call) withdraw(q *question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.questions, q); i >= 0 {
		c.questions = slices.Delete(c.questions, i, i+1)
		c.change()
	}
}

// take answers the open questions. It ignores unknown keys, keys that are not in keys
// unless that is nil, and second answers.
func (c *call) take(keys []string, answers map[string]jsontext.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, answer := range answers {
		i := slices.IndexFunc(c.questions, func(q *question) bool { return q.key == key })
		if i < 0 || keys != nil && !slices.Contains(keys, key) {
			continue
		}
		c.questions[i].answer <- stdjson.RawMessage(answer.Clone())
		c.questions = slices.Delete(c.questions, i, i+1)
		c.change()
	}
}

// inputRequest returns an elicitation/create request for a result.
func inputRequest(params stdjson.RawMessage) (modern.InputRequest, error) {
	raw, err := json.Marshal(map[string]any{"q": map[string]any{
		"method": mcptypes.ElicitationCreate.Name(), "params": jsontext.Value(params),
	}})
	if err != nil {
		return nil, err
	}
	var requests modern.InputRequests
	if err := modern.Decode(raw, &requests); err != nil {
		return nil, err
	}
	return requests["q"], nil
}

// client is the place that asks the client. Its questions are sent in the result of a
// request.
type client struct{ *call }

// Decider implements [approval.Place].
func (client) Decider() approval.Decider { return approval.ByClient }

// Ask implements [approval.Place].
func (p client) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	o := &p.session.server.Approvals
	asked := *r.Question // a copy, because others read it
	asked.Extra = nil
	if asked.Meta == nil {
		asked.Meta = map[string]any{approval.MetaKey: r.Meta()}
	}
	p.mu.Lock()
	who := p.client
	p.mu.Unlock()
	params, err := asked.Params(who, o)
	if err != nil {
		return elicit.Outcome{}, err
	}
	answer, err := p.ask(ctx, params)
	switch {
	case err == nil:
		return r.Question.ReadInputResponse(answer, o), nil
	case errors.Is(err, elicit.ErrUnsupported):
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		return elicit.Outcome{}, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		p.abandon()
	}
	return r.Question.ReadError(err, o), nil
}

// elicit asks a question other than an approval.
func (c *call) elicit(ctx context.Context, params stdjson.RawMessage) (stdjson.RawMessage, error) {
	ctx, cancel := c.session.server.Approvals.WithTimeout(ctx)
	defer cancel()
	answer, err := c.ask(ctx, params)
	if errors.Is(err, context.DeadlineExceeded) {
		c.abandon()
	}
	return answer, err
}

// deaf is the place for a client that does not support elicitation.
type deaf struct{ session *Session }

// Decider implements [approval.Place].
func (deaf) Decider() approval.Decider { return approval.ByClient }

// Ask implements [approval.Place].
func (p deaf) Ask(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
	return r.Question.ReadError(elicit.ErrUnsupported, &p.session.server.Approvals), nil
}

// hold is a place that keeps the questions of turns in the background open until a call of
// codex-wait asks the client.
type hold struct{ session *Session }

// Decider implements [approval.Place].
func (hold) Decider() approval.Decider { return approval.ByClient }

// Ask implements [approval.Place].
func (p hold) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, maxOpen)
	defer cancel()
	<-ctx.Done()
	return r.Question.ReadError(ctx.Err(), &p.session.server.Approvals), nil
}
