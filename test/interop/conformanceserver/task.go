package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// ttl is how long a task is kept and runs at most, and how long a list may be kept.
const ttl = 10 * time.Minute

// work is what a task does. It asks by the task; without one it is run within the call
// and asks nothing.
type work func(context.Context, *task) (*modern.CallToolResult, error)

// tasks are the calls that continue after their answer.
type tasks struct {
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	byID map[string]*task
}

func newTasks() *tasks {
	ctx, end := context.WithCancel(context.Background())
	return &tasks{ctx: ctx, end: end, byID: make(map[string]*task)}
}

func (t *tasks) close() {
	t.end()
	t.running.Wait()
}

// A task is one of them.
type task struct {
	created time.Time
	client  elicit.Client
	cancel  context.CancelFunc

	mu       sync.Mutex
	about    modern.Task
	result   modern.DetailedTask        // nil while it runs
	keys     int                        // how many keys were ever used
	open     modern.InputRequests       // what waits for an answer
	answers  map[string]json.RawMessage // to what was asked with it
	answered chan struct{}              // closed when nothing is open
}

// start begins a task. It can be found from the moment that its result is known.
func (t *tasks) start(client elicit.Client, do work) *modern.CreateTaskResult {
	ctx, cancel := context.WithTimeout(t.ctx, ttl)
	now := stamp()
	k := &task{created: time.Now(), client: client, cancel: cancel, about: modern.Task{
		TaskID: rand.Text(), CreatedAt: now, LastUpdatedAt: now,
		TTLMs: new(ttl.Milliseconds()), PollIntervalMs: new(int64(200)),
	}}
	about := k.about
	t.mu.Lock()
	maps.DeleteFunc(t.byID, func(_ string, old *task) bool { return time.Since(old.created) > ttl })
	t.byID[about.TaskID] = k
	t.mu.Unlock()
	t.running.Go(func() {
		defer cancel()
		result, err := do(ctx, k)
		k.finish(result, err, ctx.Err() != nil)
	})
	return &modern.CreateTaskResult{
		Meta: identity, TaskID: about.TaskID, Status: modern.TaskStatusWorking,
		CreatedAt: about.CreatedAt, LastUpdatedAt: about.LastUpdatedAt, TTLMs: about.TTLMs,
		PollIntervalMs: about.PollIntervalMs,
	}
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// finish ends a task. A tool that failed is a result; failed is what has none.
func (k *task) finish(result *modern.CallToolResult, err error, cancelled bool) {
	var raw []byte
	if err == nil {
		raw, err = modern.Encode(result)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.about.LastUpdatedAt = stamp()
	var failure *jsonrpc.Error
	switch {
	case cancelled:
		k.result = k.about.Cancelled()
	case errors.As(err, &failure):
		k.result = k.about.Failed(modern.Error{Code: int64(failure.Code), Message: failure.Message, Data: failure.Data})
	case err != nil:
		k.result = k.about.Failed(modern.Error{Code: modern.CodeInternal, Message: err.Error()})
	default:
		k.result = k.about.Completed(raw)
	}
}

// elicit asks questions side by side, and returns when all are answered.
func (k *task) elicit(ctx context.Context, questions ...*elicit.Question) ([]outcome, error) {
	outcomes := make([]outcome, len(questions))
	if !k.client.CanAsk() {
		for i, q := range questions {
			outcomes[i].Outcome = q.ReadError(elicit.ErrUnsupported, nil)
		}
		return outcomes, nil
	}
	requests := make([]modern.InputRequest, len(questions))
	for i, q := range questions {
		var err error
		if requests[i], err = inputRequest(q, k.client); err != nil {
			return nil, err
		}
	}
	keys := make([]string, len(questions))
	k.mu.Lock()
	k.open, k.answers, k.answered = modern.InputRequests{}, map[string]json.RawMessage{}, make(chan struct{})
	for i := range questions {
		k.keys++ // a key is never used twice
		keys[i] = fmt.Sprintf("q%d", k.keys)
		k.open[keys[i]] = requests[i]
	}
	k.about.LastUpdatedAt = stamp()
	answered := k.answered
	k.mu.Unlock()

	select {
	case <-answered:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, q := range questions {
		outcomes[i] = read(q, k.answers[keys[i]])
	}
	return outcomes, nil
}

// update takes answers. What is not open is ignored, so the first answer counts.
func (k *task) update(responses map[string]json.RawMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.open)
	for key, response := range responses {
		if _, ok := k.open[key]; ok {
			delete(k.open, key)
			k.answers[key] = response
		}
	}
	if before > 0 && len(k.open) == 0 {
		close(k.answered)
	}
	if before > len(k.open) {
		k.about.LastUpdatedAt = stamp()
	}
}

// now is the task as it is.
func (k *task) now() modern.DetailedTask {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.result != nil:
		return k.result
	case len(k.open) > 0:
		return k.about.InputRequired(maps.Clone(k.open))
	}
	return k.about.Working()
}

// find looks a task up for a request that declares the extension.
func (t *tasks) find(meta *modern.RequestMetaObject, id string) (*task, error) {
	if err := needsTasks(meta.ClientCapabilities); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.byID[id]
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/taskId: there is no task %q", id)
	}
	return k, nil
}

func (t *tasks) get(_ context.Context, p *modern.GetTaskRequestParams) (*modern.GetTaskResult, error) {
	k, err := t.find(p.Meta, p.TaskID)
	if err != nil {
		return nil, err
	}
	return &modern.GetTaskResult{Meta: identity, Task: k.now()}, nil
}

func (t *tasks) update(ctx context.Context, p *modern.UpdateTaskRequestParams) (*modern.UpdateTaskResult, error) {
	k, err := t.find(p.Meta, p.TaskID)
	if err != nil {
		return nil, err
	}
	k.update(originOf(ctx).responses)
	return &modern.UpdateTaskResult{Meta: identity}, nil
}

// cancel asks a task to end. One that has ended stays as it is.
func (t *tasks) cancel(_ context.Context, p *modern.CancelTaskRequestParams) (*modern.CancelTaskResult, error) {
	k, err := t.find(p.Meta, p.TaskID)
	if err != nil {
		return nil, err
	}
	k.cancel()
	return &modern.CancelTaskResult{Meta: identity}, nil
}
