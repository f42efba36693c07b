package mcp

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// inbox has the open questions of a call, or of the task that it is: they go to the client in results, and
// later requests have the answers. It is safe for concurrent use. It calls its functions without its lock.
type inbox struct {
	options *elicit.Options
	slots   *elicit.Slots        // limit the open questions
	client  func() elicit.Client // of the newest request
	changed func()               // a question is open, or no longer
	expires func()               // a question had no answer in time
	canAsk  bool                 // the client of the first request can be asked
	life    int                  // how many processes have had the call before

	mu      sync.Mutex
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

// has reports whether a question is open.
func (b *inbox) has() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 0
}

// send returns the open questions for the client, which gets them now.
func (b *inbox) send() modern.InputRequests {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests()
}

// requests is send for a caller that holds b.mu.
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

// round is send for the result of a call. It also returns how many results of the call had questions.
func (b *inbox) round() (requests modern.InputRequests, rounds int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if requests = b.requests(); len(requests) > 0 {
		b.rounds++
	}
	return requests, b.rounds
}

// refuse answers the open questions for a client that cannot show them. It reports whether there were
// any.
func (b *inbox) refuse() bool {
	b.mu.Lock()
	for _, one := range b.open {
		close(one.answered)
	}
	had := len(b.open) > 0
	b.open = nil
	b.mu.Unlock()
	if had {
		b.changed()
	}
	return had
}

// take answers open questions. It ignores unknown keys, keys that are not in keys
// unless that is nil, and second answers. It returns what was answered too late, each once.
func (b *inbox) take(keys []string, answers map[string]jsontext.Value) (late []*approval.Request) {
	b.mu.Lock()
	had := len(b.open)
	for key, answer := range answers {
		if keys != nil && !slices.Contains(keys, key) {
			continue
		}
		if !b.answer(key, answer) && b.expired[key] != nil {
			late = append(late, b.expired[key])
			delete(b.expired, key)
		}
	}
	changed := len(b.open) != had
	b.mu.Unlock()
	if changed {
		b.changed()
	}
	return late
}

// answer answers the open question with a key. It reports whether there was one. The caller holds b.mu.
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

// isLate reports whether a question had no answer in time, and none since.
func (b *inbox) isLate() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.expired) > 0
}

// add opens the question of an elicitation/create request.
func (b *inbox) add(request stdjson.RawMessage) *question {
	one := &question{request: request, answered: make(chan struct{})}
	b.mu.Lock()
	b.keys++
	one.key = "q" + strconv.Itoa(b.keys)
	if b.life > 0 { // an answer to a question of the process before is none to this one
		one.key = fmt.Sprintf("q%d.%d", b.life+1, b.keys)
	}
	b.open = append(b.open, one)
	b.mu.Unlock()
	b.changed()
	return one
}

// withdraw closes a question for r, or nil. It reports whether it was open, and so has no answer.
func (b *inbox) withdraw(one *question, expired bool, r *approval.Request) bool {
	b.mu.Lock()
	i := slices.Index(b.open, one)
	if i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
		if expired && r != nil {
			if b.expired == nil {
				b.expired = map[string]*approval.Request{}
			}
			b.expired[one.key] = r
		}
	}
	b.mu.Unlock()
	if i >= 0 {
		b.changed()
	}
	return i >= 0
}

// wait opens the question of an elicitation/create request, raw, and waits for its answer, or until
// ctx ends. R is what is to be approved, or nil.
func (b *inbox) wait(ctx context.Context, raw stdjson.RawMessage, r *approval.Request) (*question, error) {
	ctx, cancel := context.WithTimeout(ctx, approve.MaxOpen)
	defer cancel()
	q := b.add(raw)
	select {
	case <-q.answered:
	case <-ctx.Done():
	}
	if b.withdraw(q, errors.Is(ctx.Err(), context.DeadlineExceeded), r) {
		return nil, ctx.Err()
	}
	if q.answer == nil {
		return nil, elicit.ErrUnsupported
	}
	return q, nil
}

// checkForm returns why a client could not read a request whose form is not of package elicit. It
// would fail the whole result, and nobody would answer.
func checkForm(request stdjson.RawMessage) error {
	return new(modern.ElicitRequest).UnmarshalJSON(request)
}

// ask asks the client. The question is sent in the result of a request.
func (b *inbox) ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	var asked *question
	who := b.client()
	question := r.Question.For(who, b.options)
	request, err := question.InputRequest(who, b.options)
	if err == nil && question.Schema != nil {
		err = checkForm(request)
	}
	if err != nil {
		return elicit.Outcome{}, err
	}
	if err = b.slots.Acquire(ctx); err == nil {
		asked, err = b.wait(ctx, request, r)
		b.slots.Release()
	}
	switch {
	case err == nil:
		out := question.ReadInputResponse(asked.answer, b.options)
		out.Took = asked.took
		return out, nil
	case errors.Is(err, elicit.ErrUnsupported):
	case ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded):
		return elicit.Outcome{}, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		b.expires()
	}
	return r.Question.ReadError(err, b.options), nil
}

// elicit asks a question of another party.
func (b *inbox) elicit(ctx context.Context, f *elicit.Foreign) (stdjson.RawMessage, error) {
	request, err := f.InputRequest(b.client())
	if err == nil {
		err = checkForm(request)
	}
	if err != nil {
		return nil, err
	}
	if err := b.slots.Acquire(ctx); err != nil {
		return nil, err
	}
	defer b.slots.Release()
	ctx, cancel := b.options.WithTimeout(ctx)
	defer cancel()
	asked, err := b.wait(ctx, request, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		b.expires()
	}
	if err != nil {
		return nil, err
	}
	return f.Read(asked.answer), nil
}
