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

// maxOpen is how long a question without a timeout stays open if no client answers it.
const maxOpen = 24 * time.Hour

// question is an open question of a call.
type question struct {
	key      string
	request  stdjson.RawMessage // of elicitation/create, as it is sent
	answered chan struct{}      // closed with the answer
	sent     time.Time          // with the first result that had it; zero before
	took     time.Duration      // from sent to the answer
	answer   stdjson.RawMessage // nil if the client cannot be asked
}

// questionnaire has the questions of a call. The call's mutex guards it, but for the last three,
// which do not change.
type questionnaire struct {
	open   []*question // in order of arrival
	keys   int         // how many questions there were
	rounds int         // how many results had questions

	expired map[string]*approval.Request // by the keys of those that had no answer in time

	life   int           // how many processes have had the call before
	canAsk bool          // the client of the first request can be asked
	slots  *elicit.Slots // limit the open ones
}

// requests returns the open questions for a result to a client that can be asked, or not.
func (q *questionnaire) requests(can bool) modern.InputRequests {
	requests := modern.InputRequests{}
	if !can {
		return requests
	}
	for _, one := range q.open {
		requests[one.key] = &modern.Unknown{Raw: one.request} // which is written as it is
	}
	return requests
}

// expire records that a question had no answer in time.
func (q *questionnaire) expire(key string, r *approval.Request) {
	if q.expired == nil {
		q.expired = map[string]*approval.Request{}
	}
	q.expired[key] = r
}

// late returns the question that an answer with a key, which is in keys unless that is nil, comes too
// late for, or nil. It does so once.
func (q *questionnaire) late(keys []string, key string) *approval.Request {
	r := q.expired[key]
	if keys == nil || slices.Contains(keys, key) {
		delete(q.expired, key)
		return r
	}
	return nil
}

// show records that the client gets the open questions now.
func (q *questionnaire) show() {
	for _, one := range q.open {
		if one.sent.IsZero() {
			one.sent = time.Now()
		}
	}
}

// add opens the question of an elicitation/create request.
func (q *questionnaire) add(request stdjson.RawMessage) *question {
	one := &question{request: request, answered: make(chan struct{})}
	q.keys++
	one.key = "q" + strconv.Itoa(q.keys)
	if q.life > 0 { // an answer to a question of the process before is none to this one
		one.key = fmt.Sprintf("q%d.%d", q.life+1, q.keys)
	}
	q.open = append(q.open, one)
	return one
}

// withdraw closes a question. It reports whether it was open, and so has no answer.
func (q *questionnaire) withdraw(one *question) (open bool) {
	if i := slices.Index(q.open, one); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
		return true
	}
	return false
}

// refuse answers the open questions for a client that cannot show them. It reports whether there were
// any.
func (q *questionnaire) refuse() bool {
	for _, one := range q.open {
		close(one.answered)
	}
	had := len(q.open) > 0
	q.open = nil
	return had
}

// answer answers the open question with a key that is in keys, unless that is nil. It reports whether
// there was one.
func (q *questionnaire) answer(keys []string, key string, answer jsontext.Value) bool {
	i := slices.IndexFunc(q.open, func(one *question) bool { return one.key == key })
	if i < 0 || keys != nil && !slices.Contains(keys, key) {
		return false
	}
	one := q.open[i]
	one.answer = stdjson.RawMessage(answer.Clone())
	if !one.sent.IsZero() {
		one.took = time.Since(one.sent)
	}
	close(one.answered)
	q.open = slices.Delete(q.open, i, i+1)
	return true
}

// slots returns how many questions of a call may be open at a time.
func (s *Server) slots() *elicit.Slots {
	return elicit.NewSlots(cmp.Or(s.Approvals.MaxPending, elicit.DefaultMaxPending))
}

// ask opens the question of an elicitation/create request, raw, and waits for its answer, or until
// ctx ends. R is what is to be approved, or nil.
func (c *call) ask(ctx context.Context, raw stdjson.RawMessage, r *approval.Request) (*question, error) {
	ctx, cancel := context.WithTimeout(ctx, maxOpen)
	defer cancel()
	c.mu.Lock()
	q := c.questions.add(raw)
	c.change()
	c.mu.Unlock()
	select {
	case <-q.answered:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.questions.withdraw(q):
		if r != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.questions.expire(q.key, r)
		}
		c.change()
		return nil, ctx.Err()
	case q.answer == nil:
		return nil, elicit.ErrUnsupported
	}
	return q, nil
}

// checkForm returns why a client could not read a request whose form is not of package elicit. It
// would fail the whole result, and nobody would answer.
func checkForm(request stdjson.RawMessage) error {
	return new(modern.ElicitRequest).UnmarshalJSON(request)
}

// refuse answers the open questions of a client whose newest request cannot be asked. It reports whether
// there were any.
func (c *call) refuse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.questions.refuse() {
		return false
	}
	c.change()
	return true
}

// take answers the open questions. It ignores unknown keys, keys that are not in keys
// unless that is nil, and second answers. The caller learns of answers that are too late.
func (c *call) take(keys []string, answers map[string]jsontext.Value) {
	var late []*approval.Request
	defer func() {
		for _, r := range late {
			c.session.client.jobs.Late(r, false)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, answer := range answers {
		if c.questions.answer(keys, key, answer) {
			c.change()
		} else if r := c.questions.late(keys, key); r != nil {
			late = append(late, r)
		}
	}
}

// who returns the client of the newest request.
func (c *call) who() elicit.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached.client
}

// place returns the client of the call as a place.
func (c *call) place() approve.Place {
	return approve.NewClient(c.session.client.hosts.Host(c.attached.client.Name), func() bool { return c.questions.canAsk }, c.asks)
}

// open reports whether the client has a question of the call, and returns a channel that is closed when
// that may have changed.
func (c *call) open() (open bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.questions.open) > 0, c.changed
}

// asks asks the client of the call. The question is sent in the result of a request.
func (c *call) asks(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	var asked *question
	o := &c.session.client.server.Approvals
	who := c.who()
	question := r.Question.For(who, o)
	request, err := question.InputRequest(who, o)
	if err == nil && question.Schema != nil {
		err = checkForm(request)
	}
	if err != nil {
		return elicit.Outcome{}, err
	}
	if err = c.questions.slots.Acquire(ctx); err == nil {
		asked, err = c.ask(ctx, request, r)
		c.questions.slots.Release()
	}
	switch {
	case err == nil:
		out := question.ReadInputResponse(asked.answer, o)
		out.Took = asked.took
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
	request, err := f.InputRequest(c.who())
	if err == nil {
		err = checkForm(request)
	}
	if err != nil {
		return nil, err
	}
	if err := c.questions.slots.Acquire(ctx); err != nil {
		return nil, err
	}
	defer c.questions.slots.Release()
	ctx, cancel := c.session.client.server.Approvals.WithTimeout(ctx)
	defer cancel()
	asked, err := c.ask(ctx, request, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		c.abandon()
	}
	if err != nil {
		return nil, err
	}
	return f.Read(asked.answer), nil
}
