package mcpcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// task is a task on the wire.
type task struct {
	ID             string                  `json:"taskId"`
	Status         string                  `json:"status"`
	PollIntervalMs *float64                `json:"pollIntervalMs"`
	Result         jsontext.Value          `json:"result"`
	InputRequests  map[string]inputRequest `json:"inputRequests"`
	Error          *struct {
		Code    jsonrpc.Code    `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// PollError means that a task could not be polled, so that its state is not known.
type PollError struct {
	Task string
	// Answered is whether an earlier poll was answered.
	Answered bool
	Err      error
}

// Error implements error.
func (e *PollError) Error() string { return fmt.Sprintf("polling task %s: %v", e.Task, e.Err) }

// Unwrap returns the cause.
func (e *PollError) Unwrap() error { return e.Err }

const (
	fastest, slowest = 20 * time.Millisecond, 30 * time.Second // bounds of the interval
	usual            = 2 * time.Second
	// held is how long the server may hold the answer to a poll.
	held = time.Minute
	// patience is how long polls may fail one after another, see [Options].Again.
	patience = 2 * time.Minute
)

// interval returns how long to wait before the next poll.
func (t *task) interval() time.Duration {
	if t.PollIntervalMs == nil {
		return usual
	}
	ms := min(max(*t.PollIntervalMs, 0), slowest.Seconds()*1000)
	return max(time.Duration(ms*float64(time.Millisecond)), fastest)
}

// Task waits for the result of the task with an id, as [Session.Call] does. Of the call, Tool
// is the name for errors.
func (s *Session) Task(ctx context.Context, id string, c *Call) (json.RawMessage, error) {
	if !s.modern {
		return nil, &PollError{id, false, errors.New("the server has no tasks")}
	}
	r, end := s.begin(c)
	defer end()
	return r.poll(ctx, task{ID: id, PollIntervalMs: new(float64)}, nil)
}

// CancelTask asks the server to end a task. It does not wait for the end.
func (s *Session) CancelTask(ctx context.Context, id string) error {
	return s.Request(ctx, modern.TasksCancel.Name(), map[string]any{"taskId": id}, &struct{}{})
}

// question is a question of a task.
type question struct {
	inputRequest
	withdraw context.CancelFunc
	answer   json.RawMessage // nil until it is answered
}

// answered is the answer to a question of a task.
type answered struct {
	key string
	*question
	answer json.RawMessage
	err    error
}

// poller polls one task.
type poller struct {
	r         *running
	id        string
	questions map[string]*question // the open ones
	answers   chan answered
	people    sync.WaitGroup // the goroutines that ask
}

// poll polls a task to its end, and answers its questions.
func (r *running) poll(ctx context.Context, t task, started func(string)) (_ json.RawMessage, err error) {
	p := &poller{r: r, id: t.ID, questions: map[string]*question{}, answers: make(chan answered)}
	asking, stop := context.WithCancel(ctx)
	defer p.people.Wait()
	defer stop()
	returned := false
	defer func() { // also after a panic of a function of the call
		if !returned || err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrLeave) {
			r.abandon(ctx, t.ID)
		}
	}()
	if started != nil {
		started(t.ID)
	}
	defer r.s.listen(r.box, func() string { return taskNotes + t.ID })()
	r.s.peer.Start(asking, modern.SubscriptionsListen.Name(), map[string]any{ // a server without it is only polled
		"_meta": r.s.metadata(true), "notifications": map[string]any{"taskIds": []string{t.ID}},
	})
	result, err := p.run(ctx, asking, t)
	returned = true
	return result, err
}

func (p *poller) run(ctx, asking context.Context, t task) (json.RawMessage, error) {
	heard := false // an earlier poll was answered
	for seen := time.Now(); ; {
		select {
		case <-time.After(t.interval()):
		case <-p.r.box.news: // a notification is not a state, but a reason to poll
			_, _ = p.r.box.take()
			select {
			case <-time.After(fastest):
			case <-ctx.Done():
			}
		case a := <-p.answers:
			switch {
			case p.questions[a.key] != a.question: // it was withdrawn
			case a.err != nil:
				return nil, a.err
			default:
				a.question.answer = a.answer
				_ = p.update(ctx, map[string]json.RawMessage{a.key: a.answer}) // the next poll shows whether it arrived
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		next, err := p.get(ctx)
		switch {
		case err == nil:
			t, seen, heard = next, time.Now(), true
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case (errors.Is(err, context.DeadlineExceeded) || p.r.s.o.Again != nil && p.r.s.o.Again(err)) &&
			time.Since(seen) < patience:
			continue
		default:
			return nil, &PollError{p.id, heard, err}
		}
		switch t.Status {
		case "working", "input_required":
			p.ask(ctx, asking, t.InputRequests)
		case "completed":
			if t.Result.Kind() != '{' {
				return nil, fmt.Errorf("tasks/get: %w: no result", ErrAnswer)
			}
			return json.RawMessage(t.Result), nil
		case "failed":
			if t.Error == nil {
				return nil, fmt.Errorf("tasks/get: %w: no error", ErrAnswer)
			}
			return nil, p.r.s.refusal(t.Error.Code, t.Error.Message, t.Error.Data)
		case "cancelled":
			return nil, ErrCancelled
		default:
			return nil, fmt.Errorf("tasks/get: %w: the status %q", ErrAnswer, Brief(t.Status))
		}
	}
}

// ask asks the new ones of the open questions, and withdraws those that are not open any more.
// An answer that has not arrived is sent again. A question that has the key of another one is
// asked: the answer was not meant for it.
func (p *poller) ask(ctx, asking context.Context, open map[string]inputRequest) {
	for key, q := range p.questions {
		if now, still := open[key]; !still || now.Method != q.Method || !bytes.Equal(now.Params, q.Params) {
			q.withdraw()
			delete(p.questions, key)
		}
	}
	lost := map[string]json.RawMessage{}
	for key, request := range open {
		if q := p.questions[key]; q != nil {
			if q.answer != nil {
				lost[key] = q.answer
			}
			continue
		}
		one, withdraw := context.WithCancel(asking)
		q := &question{inputRequest: request, withdraw: withdraw}
		p.questions[key] = q
		p.people.Go(func() {
			a, err := p.r.answer(one, request)
			if one.Err() != nil {
				return
			}
			select {
			case p.answers <- answered{key, q, a, err}:
			case <-one.Done():
			}
		})
	}
	if len(lost) > 0 {
		_ = p.update(ctx, lost) // the next poll shows whether they arrived
	}
}

// get polls the task once.
func (p *poller) get(ctx context.Context) (t task, err error) {
	limited, stop := context.WithTimeout(ctx, held)
	defer stop()
	err = p.r.s.Request(limited, modern.TasksGet.Name(), map[string]any{"taskId": p.id}, &t)
	if err == nil && t.ID != p.id {
		err = fmt.Errorf("tasks/get: %w: it is about another task", ErrAnswer)
	}
	if err == nil {
		err = bounded("tasks/get", t.InputRequests)
	}
	return t, err
}

// update sends answers to questions of the task.
func (p *poller) update(ctx context.Context, answers map[string]json.RawMessage) error {
	limited, stop := context.WithTimeout(ctx, held)
	defer stop()
	return p.r.s.Request(limited, modern.TasksUpdate.Name(), map[string]any{"taskId": p.id, "inputResponses": answers},
		&struct{}{})
}

// abandon cancels a task after ctx has ended.
func (r *running) abandon(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	_ = r.s.CancelTask(ctx, id) // the caller has another error
}
