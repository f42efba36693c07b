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
func (s *Session) getTask(q *request) (any, error) {
	id, err := q.taskID()
	if err != nil {
		return nil, err
	}
	return s.serveTask(q, id, func(f found) (any, error) {
		task, _, _ := s.seen(f, q.canAsk)
		return &modern.GetTaskResult{Meta: s.server.meta(), Task: task}, nil
	})
}

// updateTask takes answers to the questions of a task. It ignores unknown and answered
// keys.
func (s *Session) updateTask(q *request) (any, error) {
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
	return s.serveTask(q, id, func(f found) (any, error) {
		answers, err := members("/inputResponses", m["inputResponses"])
		if err == nil {
			err = f.act(func(t *task) { t.call.take(nil, answers) })
		}
		return &modern.UpdateTaskResult{Meta: s.server.meta()}, err
	})
}

// cancelTask interrupts the turn of a task without waiting for its end.
func (s *Session) cancelTask(q *request) (any, error) {
	id, err := q.taskID()
	if err != nil {
		return nil, err
	}
	return s.serveTask(q, id, func(f found) (any, error) {
		return &modern.CancelTaskResult{Meta: s.server.meta()}, f.act(func(t *task) {
			t.call.update(func() { t.cancelled = true })
			t.call.cancel(thread.ErrInterrupted)
		})
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

// found is a task that this process serves, or else a file.
type found struct {
	task  *task // nil for a file
	file  taskfile.Task
	owner taskfile.Owner // of the file
}

// act changes a task that is not finished. Only the process that serves it can.
func (f found) act(change func(*task)) error {
	switch {
	case f.task != nil:
		change(f.task)
	case f.owner == taskfile.Other:
		return fmt.Errorf("process %d serves this task: only there can it be answered or cancelled", f.file.Server.PID)
	}
	return nil
}

// seen returns a task for a client that can be asked, or not, and whether it has ended. Changed is closed when it
// may be another, nil for one of another process.
func (s *Session) seen(f found, can bool) (d modern.DetailedTask, over bool, changed <-chan struct{}) {
	if f.task == nil {
		return s.foreign(f.file, f.owner), f.owner != taskfile.Other, nil
	}
	c := f.task.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.task.detailed(can), f.task.over, c.changed
}

// serveTask answers a request with what f returns for the task of an id.
func (s *Session) serveTask(q *request, id string, f func(found) (any, error)) (any, error) {
	if t := s.live(id); t != nil {
		return f(found{task: t})
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.later(q.rpc, func() (any, error) {
		found, err := s.find(id)
		if err != nil {
			return nil, err
		}
		return f(found)
	})
	return nil, nil
}

// find returns a task of the session's principal.
func (s *Session) find(id string) (found, error) {
	if t := s.live(id); t != nil {
		return found{task: t}, nil
	}
	file, owner, err := s.read(id)
	if err == nil && (owner == taskfile.Gone || owner == taskfile.Self && !file.Status.Finished()) {
		s.continueAs(file, nil) // or another session does, or has
		if t := s.live(id); t != nil {
			return found{task: t}, nil
		}
		file, owner, err = s.read(id)
	}
	if err == nil && owner == taskfile.Self && !file.Status.Finished() { // a turn in the background
		err = Invalid("/taskId", "no such task")
	}
	return found{file: file, owner: owner}, err
}

// read reads the file of a task of the session's principal.
func (s *Session) read(id string) (taskfile.Task, taskfile.Owner, error) {
	s.reads <- struct{}{}
	file, owner, err := s.server.Tasks.store.Get(id)
	<-s.reads
	switch {
	case errors.Is(err, taskfile.ErrUnknown), err == nil && file.Principal != s.principal():
		return file, owner, Invalid("/taskId", "no such task")
	case err != nil:
		return file, owner, fmt.Errorf("read the task: %w", err)
	}
	return file, owner, nil
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
func (s *Session) foreign(f taskfile.Task, owner taskfile.Owner) modern.DetailedTask {
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
