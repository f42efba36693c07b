package mcp

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// The methods of tasks run on the read loop. They answer at once for a task that this
// process serves, and in another goroutine for others, because they must read a file.

// getTask returns the state of a task.
func (s *ModernSession) getTask(q *request) (any, error) {
	id, err := q.taskID()
	if err != nil {
		return nil, err
	}
	return s.serveTask(q, id, func(t *task, file taskfile.Task, owner taskfile.Owner) (any, error) {
		if t == nil {
			return &modern.GetTaskResult{Meta: s.resultMeta(), Task: s.foreign(file, owner)}, nil
		}
		t.call.mu.Lock()
		defer t.call.mu.Unlock()
		return &modern.GetTaskResult{Meta: s.resultMeta(), Task: t.detailed(q.canAsk)}, nil
	})
}

// updateTask takes answers to the questions of a task. It ignores unknown and answered
// keys.
func (s *ModernSession) updateTask(q *request) (any, error) {
	if err := q.needTasks(); err != nil {
		return nil, err
	}
	m, err := members("", jsontext.Value(q.rpc.Params))
	if err != nil {
		return nil, err
	}
	var id string
	if err := decode(stdjson.RawMessage(m["taskId"]), &id); err != nil {
		return nil, Invalid("/taskId", "want a string")
	}
	return s.serveTask(q, id, func(t *task, file taskfile.Task, owner taskfile.Owner) (any, error) {
		answers, err := members("/inputResponses", m["inputResponses"])
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			t.call.take(nil, answers)
		case owner == taskfile.Other:
			return nil, elsewhere(file)
		}
		return &modern.UpdateTaskResult{Meta: s.resultMeta()}, nil
	})
}

// cancelTask interrupts the turn of a task without waiting for its end.
func (s *ModernSession) cancelTask(q *request) (any, error) {
	id, err := q.taskID()
	if err != nil {
		return nil, err
	}
	return s.serveTask(q, id, func(t *task, file taskfile.Task, owner taskfile.Owner) (any, error) {
		switch {
		case t != nil:
			t.call.update(func() { t.cancelled = true })
			t.call.cancel(thread.ErrInterrupted)
		case owner == taskfile.Other:
			return nil, elsewhere(file)
		}
		return &modern.CancelTaskResult{Meta: s.resultMeta()}, nil
	})
}

// taskID returns the id in the params of a request for a task.
func (q *request) taskID() (string, error) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	err := q.needTasks()
	if err == nil {
		err = decode(q.rpc.Params, &p)
	}
	return p.TaskID, err
}

// serveTask answers a request with what f returns for the task of an id: the task if this
// process serves it, or else nil and its file.
func (s *ModernSession) serveTask(q *request, id string, f func(*task, taskfile.Task, taskfile.Owner) (any, error)) (any, error) {
	if t := s.live(id); t != nil {
		return f(t, taskfile.Task{}, taskfile.Self)
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.client.later(q.rpc, func() (any, error) {
		t, file, owner, err := s.find(id)
		if err != nil {
			return nil, err
		}
		return f(t, file, owner)
	}, s.open.leave)
	return nil, nil
}

// live returns the task with an id if this process serves it and it belongs to the
// session's principal, and nil otherwise.
func (s *ModernSession) live(id string) *task {
	if t := s.client.server.Tasks.live(id); t != nil && t.call.session.client.principal() == s.client.principal() {
		return t
	}
	return nil
}

// find returns a task of the session's principal: the task if this process serves it, or
// else its file.
func (s *ModernSession) find(id string) (*task, taskfile.Task, taskfile.Owner, error) {
	if t := s.live(id); t != nil {
		return t, taskfile.Task{}, taskfile.Self, nil
	}
	file, owner, err := s.read(id)
	if err == nil && owner == taskfile.Gone {
		s.continueAs(file, nil)
	}
	if err == nil && (owner == taskfile.Gone || owner == taskfile.Self && !file.Status.Finished()) {
		release, ok := s.client.server.Tasks.adopt(s.client.ctx) // another session may take it over
		if !ok {
			return nil, file, owner, s.client.ctx.Err()
		}
		release()
		if t := s.live(id); t != nil {
			return t, file, taskfile.Self, nil
		}
		file, owner, err = s.read(id)
	}
	if err == nil && owner == taskfile.Self && !file.Status.Finished() { // a turn in the background
		err = Invalid("/taskId", "no such task")
	}
	return nil, file, owner, err
}

// read reads the file of a task of the session's principal.
func (s *ModernSession) read(id string) (taskfile.Task, taskfile.Owner, error) {
	s.reads <- struct{}{}
	file, owner, err := s.client.server.Tasks.store.Get(id)
	<-s.reads
	switch {
	case errors.Is(err, taskfile.ErrUnknown), err == nil && file.Principal != s.client.principal():
		return file, owner, Invalid("/taskId", "no such task")
	case err != nil:
		return file, owner, fmt.Errorf("read the task: %w", err)
	}
	return file, owner, nil
}

// elsewhere returns the error for a request that only the serving process can handle.
func elsewhere(f taskfile.Task) error {
	return fmt.Errorf("process %d serves this task: only there can it be answered or cancelled", f.Server.PID)
}

// moment is the state of a task at one moment.
type moment struct {
	status  taskfile.Status
	message string
	doing   string // message without the duration
}

// now returns the current state for a client that can be asked, or not. The caller holds c.mu.
func (c *call) now(can bool) moment {
	m := moment{status: taskfile.Working, message: "starting", doing: "starting"}
	if c.turn != nil {
		state := c.turn.State()
		m.message = state.Words()
		state.Since = time.Now()
		m.doing = state.Words()
	}
	if can && len(c.inbox.open) > 0 {
		m.status = taskfile.InputRequired
	}
	return m
}

// detailed returns the task for a poll. The caller holds the call's mutex.
func (t *task) detailed(can bool) modern.DetailedTask {
	if t.over {
		f := t.file
		if t.call.turn != nil && f.Status == taskfile.Completed {
			if late := t.call.turn.Afterwards(); len(late) > 0 {
				f.Result = t.call.withTexts(late)
			}
		}
		return finished(f)
	}
	now := t.call.now(can)
	shared := t.shared(now.message)
	if now.status == taskfile.InputRequired {
		if requests := t.call.inbox.requests(); len(requests) > 0 {
			return shared.InputRequired(requests)
		}
	}
	return shared.Working()
}

// withTexts returns the result of the call with more texts, as JSON.
func (c *call) withTexts(words []string) jsontext.Value {
	r := *c.result
	r.Content = slices.Clip(r.Content)
	for _, text := range words {
		r.Content = append(r.Content, &mcptypes.TextContent{Text: "\n" + text})
	}
	r.StructuredContent = stdjson.RawMessage(c.turn.WithAfterwards(maxText))
	result, _ := modern.Encode(c.complete(&r)) // it was encoded before
	return jsontext.Value(result)
}

// How often a client should poll, in milliseconds. This delays each approval.
const (
	pollOften  = 500
	pollSeldom = 2_000
)

// shared returns the members of an unfinished task that do not depend on its status. The
// caller holds the call's mutex.
func (t *task) shared(message string) modern.Task {
	poll := int64(pollSeldom)
	if time.Since(t.file.Created) < time.Minute || len(t.call.inbox.open) > 0 {
		poll = pollOften
	}
	shared := sharedOf(t.file, message)
	shared.PollIntervalMs = &poll
	return shared
}

// sharedOf returns the members of every task, from its file.
func sharedOf(f taskfile.Task, message string) modern.Task {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return modern.Task{TaskID: f.ID, CreatedAt: stamp(f.Created), LastUpdatedAt: stamp(f.Updated), StatusMessage: &message}
}

// finished returns a task that has ended, from its file.
func finished(f taskfile.Task) modern.DetailedTask {
	t := sharedOf(f, elicit.OneLine(f.Message, 0))
	t.TTLMs = new(f.Expires.Sub(f.Created).Milliseconds())
	if f.Status == taskfile.Cancelled {
		return t.Cancelled()
	}
	return t.Completed(stdjson.RawMessage(f.Result))
}

// foreign returns a task that this process does not serve, from its file.
func (s *ModernSession) foreign(f taskfile.Task, owner taskfile.Owner) modern.DetailedTask {
	switch owner {
	case taskfile.Gone:
		answer, did := tools.Ended(f.Thread(), f.Did)
		if did != "" {
			did = "; " + did
		}
		result, _ := modern.Encode((&call{session: s}).complete(answer)) // its parts always encode
		f.Status, f.Message, f.Result = taskfile.Completed, "the server ended while this task ran"+did, jsontext.Value(result)
		if f.Expires.IsZero() {
			f.Expires = time.Now().Add(taskfile.Keep)
		}
	case taskfile.Other:
		t := sharedOf(f, fmt.Sprintf("served by process %d: %s", f.Server.PID, elicit.OneLine(f.Message, 0)))
		t.PollIntervalMs = new(int64(pollSeldom))
		return t.Working()
	}
	return finished(f)
}
