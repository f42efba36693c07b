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
		return s.answerTask(t, q, params)
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
		return s.answerTask(t, q, params)
	})
	return nil, nil
}

// task is a task for a client: a [liveTask] or a [filedTask].
type task interface {
	// seen returns the task for a client that can be asked, or not, and whether it has ended. Changed is closed when it may be
	// another, nil for one of another process.
	seen(can bool) (d modern.DetailedTask, over bool, changed <-chan struct{})
	// take takes answers to its questions, and ignores unknown and answered keys.
	take(answers map[string]jsontext.Value) error
	// cancel interrupts its turn, without waiting for its end.
	cancel() error
}

// answerTask answers a request about a task.
func (s *Session) answerTask(t task, q *request, params map[string]jsontext.Value) (any, error) {
	meta := s.server.meta()
	switch q.rpc.Method {
	case modern.TasksGet.Name():
		d, _, _ := t.seen(q.canAsk)
		return &modern.GetTaskResult{Meta: meta, Task: d}, nil
	case modern.TasksUpdate.Name():
		answers, err := members("/inputResponses", params["inputResponses"])
		if err == nil {
			err = t.take(answers)
		}
		return &modern.UpdateTaskResult{Meta: meta}, err
	}
	return &modern.CancelTaskResult{Meta: meta}, t.cancel()
}

// find returns a task of the session's principal.
func (s *Session) find(id string) (task, error) {
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
			return &filedTask{session: s, file: file, owner: owner}, nil
		}
	}
}

// status returns the status for a client that can be asked, or not. The caller holds the mutex.
func (c *call) status(can bool) modern.TaskStatus {
	if can && len(c.inbox.open) > 0 {
		return modern.TaskStatusInputRequired
	}
	return modern.TaskStatusWorking
}

func (t *liveTask) seen(can bool) (d modern.DetailedTask, over bool, changed <-chan struct{}) {
	t.session.calls.mu.Lock()
	defer t.session.calls.mu.Unlock()
	if t.task.Finished() { // its file could not be written
		return endedTask(&t.task), true, t.call.changed
	}
	shown := t.shared(t.call.turn.State().Line())
	if t.call.status(can) == modern.TaskStatusInputRequired {
		return shown.InputRequired(t.call.inbox.requests()), false, t.call.changed
	}
	return shown.Working(), false, t.call.changed
}

func (t *liveTask) take(answers map[string]jsontext.Value) error {
	t.call.take(answers)
	return nil
}

func (t *liveTask) cancel() error {
	t.call.update(func() {
		t.cancelled = true
		t.call.turn.Stop() // no other process continues it
	})
	t.call.cancel(thread.ErrInterrupted)
	return nil
}

// shared returns the members of the unfinished task that do not depend on its status. The caller holds the mutex.
func (t *liveTask) shared(message string) modern.Task {
	poll := int64(pollSeldom)
	if time.Since(t.task.Created) < time.Minute || len(t.call.inbox.open) > 0 {
		poll = pollOften
	}
	return sharedTask(&t.task, message, &poll)
}

// filedTask is a task that this process does not serve, as its file has it.
type filedTask struct {
	session *Session
	file    taskfile.Task
	owner   taskfile.Owner
}

func (t *filedTask) seen(bool) (d modern.DetailedTask, over bool, changed <-chan struct{}) {
	f := t.file
	switch t.owner {
	case taskfile.Other:
		words := fmt.Sprintf("served by process %d: %s", f.Server.PID, plain.OneLine(f.Message, 0))
		return sharedTask(&f, words, new(int64(pollSeldom))).Working(), false, nil
	case taskfile.Gone:
		t.session.lose(&f)
	}
	return endedTask(&f), true, nil
}

func (t *filedTask) take(map[string]jsontext.Value) error { return t.served() }

func (t *filedTask) cancel() error { return t.served() }

// served fails if another process serves the task: only there can it be changed.
func (t *filedTask) served() error {
	if t.owner == taskfile.Other {
		return fmt.Errorf("process %d serves this task: only there can it be answered or cancelled", t.file.Server.PID)
	}
	return nil
}

// How often a client should poll, in milliseconds. This delays each approval.
const (
	pollOften  = 500
	pollSeldom = 2_000
)

// sharedTask returns the members of a task that do not depend on its status.
func sharedTask(f *taskfile.Task, message string, poll *int64) modern.Task {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	return modern.Task{
		TaskID: f.ID, CreatedAt: stamp(f.Created), LastUpdatedAt: stamp(f.Updated),
		StatusMessage: &message, PollIntervalMs: poll,
	}
}

// endedTask returns a task that has ended, as its file has it.
func endedTask(f *taskfile.Task) modern.DetailedTask {
	ended := sharedTask(f, plain.OneLine(f.Message, 0), nil)
	ended.TTLMs = new(f.Expires().Sub(f.Created).Milliseconds())
	if f.Status == modern.TaskStatusCancelled {
		return ended.Cancelled()
	}
	return ended.Completed(stdjson.RawMessage(f.Result))
}

// lose makes the file of a task whose server is gone, or was stopped, that of one that has ended.
func (s *Session) lose(f *taskfile.Task) {
	answer, did := tools.Ended(f.Did)
	result, _ := modern.Encode(s.server.complete(answer)) // its parts always encode
	f.Status, f.Result = modern.TaskStatusCompleted, jsontext.Value(result)
	f.Message = "the server ended while this task ran; " + did
}
