package mcp

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// The methods of tasks run on the read loop. They answer at once for a task that this
// process serves, and in another goroutine for others, because they must read a file.

// serveTask answers a request about the task that its params name.
func (s *Session) serveTask(q *request) (any, error) {
	if err := q.needTasks(); err != nil {
		return nil, err
	}
	params, err := members("", jsontext.Value(q.rpc.Params))
	if err != nil {
		return nil, err
	}
	id, err := textIn(params, "", "taskId")
	if err != nil {
		return nil, err
	}
	if t := s.live(id); t != nil {
		return t.serve(q, params)
	}
	leave, err := s.Enter()
	if err != nil {
		return nil, err
	}
	s.Later(q.rpc, func() (any, error) {
		defer leave()
		t, err := s.find(id)
		if err != nil {
			return nil, err
		}
		return t.serve(q, params)
	})
	return nil, nil
}

// serve returns the state of the task, takes answers to its questions, of which it ignores unknown and answered keys, or
// interrupts its turn without waiting for its end.
func (t *task) serve(q *request, params map[string]jsontext.Value) (any, error) {
	meta := t.session.server.meta()
	switch q.rpc.Method {
	case modern.TasksGet.Name():
		d, _, _ := t.seen(q.canAsk)
		return &modern.GetTaskResult{Meta: meta, Task: d}, nil
	case modern.TasksUpdate.Name():
		answers, err := members("/inputResponses", params["inputResponses"])
		if err == nil {
			err = t.act(func() { t.call.take(answers) })
		}
		return &modern.UpdateTaskResult{Meta: meta}, err
	}
	return &modern.CancelTaskResult{Meta: meta}, t.act(func() {
		t.call.update(func() {
			t.cancelled = true
			t.call.turn.Stop() // no other process continues it
		})
		t.call.cancel(thread.ErrInterrupted)
	})
}

// act changes a task that is not finished. Only the process that serves it can.
func (t *task) act(change func()) error {
	switch {
	case t.call != nil:
		change()
	case t.owner == taskfile.Other:
		return fmt.Errorf("process %d serves this task: only there can it be answered or cancelled", t.file.Server.PID)
	}
	return nil
}

// find returns a task of the session's principal.
func (s *Session) find(id string) (*task, error) {
	for again := false; ; again = true {
		if t := s.live(id); t != nil {
			return t, nil
		}
		s.reads <- struct{}{}
		file, owner, err := s.server.Tasks.store.Get(id)
		<-s.reads
		switch {
		case err != nil && !errors.Is(err, taskfile.ErrUnknown):
			return nil, fmt.Errorf("read the task: %w", err)
		case err != nil, file.Principal != s.principal(),
			again && owner == taskfile.Self: // a turn in the background
			return nil, Invalid("/taskId", "no such task")
		case !again && (owner == taskfile.Gone || owner == taskfile.Self):
			s.continueAs(file, nil) // or another session does, or has
		default:
			return &task{session: s, file: file, owner: owner}, nil
		}
	}
}

// status returns the status for a client that can be asked, or not. The caller holds c.mu.
func (c *call) status(can bool) modern.TaskStatus {
	if can && len(c.inbox.open) > 0 {
		return modern.TaskStatusInputRequired
	}
	return modern.TaskStatusWorking
}

// seen returns a task for a client that can be asked, or not, and whether it has ended. Changed is closed when it
// may be another, nil for one of another process.
func (t *task) seen(can bool) (d modern.DetailedTask, over bool, changed <-chan struct{}) {
	if t.call != nil {
		t.call.mu.Lock()
		defer t.call.mu.Unlock()
	}
	f := t.file
	expires := f.Expires()
	switch {
	case t.call != nil && !f.Finished():
		now := t.shared(t.call.turn.State().Line())
		if t.call.status(can) == modern.TaskStatusInputRequired {
			return now.InputRequired(t.call.inbox.requests()), false, t.call.changed
		}
		return now.Working(), false, t.call.changed
	case t.owner == taskfile.Other:
		return t.shared(fmt.Sprintf("served by process %d: %s", f.Server.PID, plain.OneLine(f.Message, 0))).Working(), false, nil
	case t.owner == taskfile.Gone:
		t.session.lose(&f)
	}
	ended := t.shared(plain.OneLine(f.Message, 0))
	ended.PollIntervalMs, ended.TTLMs = nil, new(expires.Sub(f.Created).Milliseconds())
	if f.Status == modern.TaskStatusCancelled {
		return ended.Cancelled(), true, nil
	}
	return ended.Completed(stdjson.RawMessage(f.Result)), true, nil
}

// How often a client should poll, in milliseconds. This delays each approval.
const (
	pollOften  = 500
	pollSeldom = 2_000
)

// shared returns the members of an unfinished task that do not depend on its status. The
// caller holds the mutex of its call, if it has one.
func (t *task) shared(message string) modern.Task {
	poll := int64(pollSeldom)
	if t.call != nil && (time.Since(t.file.Created) < time.Minute || len(t.call.inbox.open) > 0) {
		poll = pollOften
	}
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return modern.Task{
		TaskID: t.file.ID, CreatedAt: stamp(t.file.Created), LastUpdatedAt: stamp(t.file.Updated),
		StatusMessage: &message, PollIntervalMs: &poll,
	}
}

// lose makes the file of a task whose server is gone, or was stopped, that of one that has ended.
func (s *Session) lose(f *taskfile.Task) {
	answer, did := tools.Ended(f.Did)
	result, _ := modern.Encode(s.server.complete(answer)) // its parts always encode
	f.Status, f.Message, f.Result = modern.TaskStatusCompleted, "the server ended while this task ran; "+did, jsontext.Value(result)
}
