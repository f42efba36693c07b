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
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxOpen is how long a question without a timeout stays open if no client answers it.
const maxOpen = 24 * time.Hour

// question is an open question of a call.
type question struct {
	key      string
	request  stdjson.RawMessage   // of elicitation/create, as it is sent
	answered chan struct{}        // closed with the first answer
	answers  []stdjson.RawMessage // the first, and those that raced with it; empty if the client cannot be asked
}

// questionnaire has the questions of a call.
type questionnaire struct {
	questions []*question // the open ones, in order of arrival
	racing    []*question // those that were answered less than the time race ago
	keys      int         // how many questions there were
	life      int         // how many processes have had the call before
	rounds    int         // how many results had questions

	slots *elicit.Slots // limit the open ones
}

// requests returns the open questions for a result. The call's mutex is held.
func (q *questionnaire) requests() modern.InputRequests {
	requests := modern.InputRequests{}
	for _, open := range q.questions {
		requests[open.key] = &modern.Unknown{Raw: open.request} // which is written as it is
	}
	return requests
}

// slots returns how many questions of a call may be open at a time.
func (s *Server) slots() *elicit.Slots {
	return elicit.NewSlots(cmp.Or(s.Approvals.MaxPending, elicit.DefaultMaxPending))
}

// race is how long after an answer another one counts that came over another connection.
// The order of the two is not known, so the stricter one counts.
const race = 20 * time.Millisecond

// ask opens the question of an elicitation/create request, raw, and waits for its answer, or until
// ctx ends. It returns more than one answer if several raced.
func (c *call) ask(ctx context.Context, raw stdjson.RawMessage) ([]stdjson.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, maxOpen)
	defer cancel()
	q := &question{request: raw, answered: make(chan struct{})}
	c.mu.Lock()
	c.keys++
	q.key = "q" + strconv.Itoa(c.keys)
	if c.life > 0 { // an answer to a question of the process before is none to this one
		q.key = fmt.Sprintf("q%d.%d", c.life+1, c.keys)
	}
	c.questions = append(c.questions, q)
	c.change()
	c.mu.Unlock()
	select {
	case <-q.answered:
		if c.session.shared {
			select {
			case <-time.After(race):
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
	answers, answered := c.withdraw(q)
	switch {
	case !answered:
		return nil, ctx.Err()
	case len(answers) == 0:
		return nil, elicit.ErrUnsupported
	}
	return answers, nil
}

// checkForm returns why a client could not read a request whose form is not of package elicit. It
// would fail the whole result, and nobody would answer.
func checkForm(request stdjson.RawMessage) error {
	return new(modern.ElicitRequest).UnmarshalJSON(request)
}

// refuse answers the open questions for a client that cannot be asked: its newest request
// does not declare elicitation.
func (c *call) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.questions {
		close(q.answered)
	}
	c.questions = nil
	c.change()
}

// withdraw closes a question and returns its answers. It reports whether the question was
// answered.
func (c *call) withdraw(q *question) (answers []stdjson.RawMessage, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.questions, q); i >= 0 {
		c.questions = slices.Delete(c.questions, i, i+1)
		c.change()
		return nil, false
	}
	c.racing = slices.DeleteFunc(c.racing, func(other *question) bool { return other == q })
	return q.answers, true
}

// take answers the open questions. It ignores unknown keys, keys that are not in keys
// unless that is nil, and second answers, unless they race with the first.
func (c *call) take(keys []string, answers map[string]jsontext.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, answer := range answers {
		i := indexOf(c.questions, keys, key)
		if i < 0 {
			c.addRacing(keys, key, answer)
			continue
		}
		q := c.questions[i]
		q.answers = append(q.answers, stdjson.RawMessage(answer.Clone()))
		close(q.answered)
		c.questions = slices.Delete(c.questions, i, i+1)
		if c.session.shared {
			c.racing = append(c.racing, q)
		}
		c.change()
	}
}

// maxRacing is how many answers to one question are kept to find the strictest. If there are
// more, one that cannot be read takes their place, and the question is not approved.
const maxRacing = 16

// contest adds answers to questions that were answered a moment ago.
func (c *call) contest(keys []string, answers map[string]jsontext.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, answer := range answers {
		c.addRacing(keys, key, answer)
	}
}

// addRacing adds an answer to a question that was answered a moment ago. c.mu is held.
func (c *call) addRacing(keys []string, key string, answer jsontext.Value) {
	i := indexOf(c.racing, keys, key)
	if i < 0 {
		return
	}
	switch q := c.racing[i]; {
	case len(q.answers) < maxRacing:
		q.answers = append(q.answers, stdjson.RawMessage(answer.Clone()))
	case len(q.answers) == maxRacing:
		q.answers = append(q.answers, stdjson.RawMessage(`null`))
	}
}

// indexOf returns the index of the question with a key that is in keys, unless that is nil;
// -1 if there is none.
func indexOf(questions []*question, keys []string, key string) int {
	if keys != nil && !slices.Contains(keys, key) {
		return -1
	}
	return slices.IndexFunc(questions, func(q *question) bool { return q.key == key })
}

// asks asks the client of the call. The question is sent in the result of a request.
func (c *call) asks(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	o := &c.session.server.Approvals
	c.mu.Lock()
	who := c.client
	c.mu.Unlock()
	question := r.Question.For(who, o)
	request, err := question.InputRequest(who, o)
	if err == nil && question.Schema != nil {
		err = checkForm(request)
	}
	if err != nil {
		return elicit.Outcome{}, err
	}
	var answers []stdjson.RawMessage
	if err = c.slots.Acquire(ctx); err == nil {
		answers, err = c.ask(ctx, request)
		c.slots.Release()
	}
	switch {
	case err == nil:
		out := question.ReadInputResponse(answers[0], o)
		for _, answer := range answers[1:] {
			if other := question.ReadInputResponse(answer, o); other.Decision.Stricter(out.Decision) {
				out = other
			}
		}
		return out, nil
	case errors.Is(err, elicit.ErrUnsupported):
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		return elicit.Outcome{}, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.abandon()
	}
	return r.Question.ReadError(err, o), nil
}

// elicit asks a question of another party.
func (c *call) elicit(ctx context.Context, f *elicit.Foreign) (stdjson.RawMessage, error) {
	if c.over() {
		return nil, elicit.ErrUnsupported // the turn continues in the background
	}
	c.mu.Lock()
	who := c.client
	c.mu.Unlock()
	request, err := f.InputRequest(who)
	if err == nil {
		err = checkForm(request)
	}
	if err != nil {
		return nil, err
	}
	if err := c.slots.Acquire(ctx); err != nil {
		return nil, err
	}
	defer c.slots.Release()
	ctx, cancel := c.session.server.Approvals.WithTimeout(ctx)
	defer cancel()
	answers, err := c.ask(ctx, request)
	if errors.Is(err, context.DeadlineExceeded) {
		c.abandon()
	}
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if !accepted(answer) {
			return f.Read(answer), nil
		}
	}
	return f.Read(answers[0]), nil
}

// accepted reports whether an answer accepts.
func accepted(answer stdjson.RawMessage) bool {
	var said struct {
		Action string `json:"action"`
	}
	return json.Unmarshal(answer, &said) == nil && said.Action == "accept"
}
