package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// questionLife is how long the questions of a call that may become a task stay open. It is
	// long, because the user of a task only looks from time to time.
	questionLife = time.Hour
	// fileTick is how often a changed status message is written to the file of a task, where
	// other processes read it.
	fileTick = 5 * time.Second
)

// task is a call that its client polls, or a turn in the background, which no client polls, or only the file of a
// task that this process does not serve. A file is written by newTask and keep alone, but for a server that takes it
// over. The call's mutex guards it.
type task struct {
	session   *Session
	call      *call           // nil for a file
	owner     taskfile.Owner  // of a file
	resume    taskfile.Resume // for the next server, without the turn
	file      taskfile.Task   // as last written
	cancelled bool            // by the client
	over      bool            // file has the result, perhaps only in memory
}

// newTask writes the first file of a turn of a call, with a new id, and what it has done. News is closed when there is
// some since.
func newTask(c *call, turn *tools.Turn, r taskfile.Resume, status modern.TaskStatus, message string) (t *task, news <-chan struct{}, err error) {
	_, news = turn.Asks() // before the file says what it is
	t = &task{session: c.session, call: c, resume: r, file: taskfile.Task{
		Principal: c.session.principal(), Tool: c.tool, Status: status, Message: message, Did: turn.Did(), Resume: resumeOf(turn, r),
	}}
	if t.file.ID, err = taskfile.NewID(turn.ThreadID()); err == nil {
		t.file, err = c.session.server.Tasks.store.Create(t.file)
	}
	return t, news, err
}

// becomeTask makes the call a task and returns the answer for its client, which
// can be asked, or not. It returns nil if the thread has not begun, or if the task's
// file cannot be written, which is logged. The call is then answered with its result.
func (c *call) becomeTask(can bool) *modern.CreateTaskResult {
	c.mu.Lock()
	turn, status, doing := c.turn, c.status(true), c.words(false)
	c.attached.late = c.attached.late && turn == nil
	c.mu.Unlock()
	if turn == nil || turn.InBackground() { // which is answered soon
		return nil
	}
	t, news, err := newTask(c, turn, taskfile.Resume{Form: c.inbox.canAsk, Host: c.call.Host}, status, doing)
	if err != nil {
		c.session.Log().Warn("a call does not become a task", "error", err)
		c.outlet.speak()
		c.update(func() { c.taskable, c.attached.late = false, false }) // the request has a deadline now
		return nil
	}
	c.session.add(t)
	var created *modern.CreateTaskResult
	c.update(func() {
		c.attached.alone = true
		created = t.shared(c.words(true)).Created()
		created.Meta, created.Status = c.session.server.meta(), c.status(can)
	})
	c.session.Go(func() { t.keep(news, c.done) })
	return created
}

// keep updates the file until done is closed, at the end: at once when its status changes, or there is
// news of the turn, so that the file of a server that was killed has what ran. News is closed when
// there is some since the file was written; nil is a task of another server, whose turn has not begun
// here. At the end the file has the result.
func (t *task) keep(news, done <-chan struct{}) {
	c := t.call
	ticker := time.NewTicker(fileTick)
	defer ticker.Stop()
	for ticked, acted := false, news == nil; ; {
		c.mu.Lock()
		if acted && c.turn != nil {
			_, news = c.turn.Asks()
		}
		status, doing, file, changed, turn, cancelled := c.status(true), c.words(false), t.file, c.changed, c.turn, t.cancelled
		c.mu.Unlock()
		if t.resume.Background {
			doing = file.Message
		}
		if turn != nil && (status != file.Status || acted || cancelled && file.Resume != nil || ticked && doing != file.Message) {
			file.Status, file.Message, file.Did, file.Resume = status, doing, turn.Did(), nil
			if !cancelled {
				file.Resume = resumeOf(turn, t.resume)
			}
			written, err := c.session.server.Tasks.store.Update(file)
			if err != nil { // the task is kept in memory
				c.session.Log().Warn("the file of a task", "task", file.ID, "error", err)
				written = file
			}
			c.mu.Lock()
			t.file = written
			c.mu.Unlock()
			acted = false
		}
		ticked = false
		select {
		case <-changed:
		case <-news:
			acted = true
		case <-ticker.C:
			ticked = true
		case <-done:
			t.end()
			return
		}
	}
}

// end writes the result of the task, or removes the file of a turn in the background. If the result cannot be
// written the task is kept in memory.
func (t *task) end() {
	c, tasks := t.call, t.call.session.server.Tasks
	c.mu.Lock()
	file, cancelled := t.file, t.cancelled
	c.mu.Unlock()
	if t.resume.Background {
		if err := tasks.store.Remove(file.ID); err != nil {
			c.session.Log().Warn("the file of a task", "task", file.ID, "error", err)
		}
		return
	}
	if cancelled {
		file.Status, file.Message = modern.TaskStatusCancelled, "cancelled by the client"
	} else {
		result, _ := modern.Encode(t.session.server.complete(t.answer())) // its parts always encode
		file.Status, file.Message, file.Result = modern.TaskStatusCompleted, "done", jsontext.Value(result)
		if isError(c.result) {
			file.Message = "ended with an error"
		}
	}
	file.Did, file.Resume = nil, nil // the result has what it did
	written, err := tasks.store.Update(file)
	if err != nil {
		written = file
		written.Updated = time.Now()
		written.Expires = written.Updated.Add(taskfile.Keep)
		c.session.Log().Error("the end of a task is kept in memory: its file cannot be written", "task", file.ID, "error", err)
	}
	late := false // an answer may come that is too late
	c.update(func() { t.file, t.over, late = written, true, len(c.inbox.expired) > 0 })
	if err == nil {
		tasks.forget(file.ID, late)
	}
}

// answer returns the result of the call, for a client that may read it from another process: it does not know
// that this server was stopped.
func (t *task) answer() *mcptypes.CallToolResult {
	c := t.call
	if c.session.ctx.Err() == nil || !isError(c.result) {
		return c.result
	}
	did := t.file.Did
	if c.turn != nil {
		did = c.turn.Did()
	}
	answer, _ := tools.Ended(t.file.Thread(), did)
	return answer
}

func isError(r *mcptypes.CallToolResult) bool { return r.IsError != nil && *r.IsError }

const (
	// sweepEvery is how often expired files are removed.
	sweepEvery = time.Hour
	// maxLate is how many tasks that have ended are kept for answers that are late.
	maxLate = 64
)

// Tasks has the unfinished tasks of one server. It is safe for concurrent use. Nil disables
// tasks.
type Tasks struct {
	options setting.Tasks // with its defaults; its limit is also for calls that may become a task
	store   *taskfile.Store
	observe Observe

	mu    sync.Mutex
	calls map[string]int // by principal: calls that are tasks or may become one
	byID  map[string]*task
	ended []string // ids in byID of tasks that have ended, for answers that are late
	swept time.Time

	adopting chan struct{} // has an element while a task of another server is taken over
}

// Observe returns a context for a turn that another server began with a call of a tool of a principal.
type Observe func(ctx context.Context, principal, tool string) context.Context

// NewTasks returns an empty Tasks. Their files are in store.
func NewTasks(store *taskfile.Store, o setting.Tasks, observe Observe) *Tasks {
	return &Tasks{options: o.Resolved(), store: store, observe: observe, calls: map[string]int{}, byID: map[string]*task{}, adopting: make(chan struct{}, 1)}
}

// continues reports whether this server continues the work of others.
func (ts *Tasks) continues() bool { return ts != nil && !ts.options.NoResume }

// enter counts a call of a principal that may become a task, and fails if there are too many.
// After a success the caller must call leave at the end of the call.
func (ts *Tasks) enter(principal string) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.calls[principal] >= ts.options.Limit {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "limits.tasks: %d tasks are unfinished, and no more may be; nothing was started", ts.options.Limit)
	}
	ts.calls[principal]++
	return nil
}

func (ts *Tasks) leave(principal string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.calls[principal]--; ts.calls[principal] == 0 {
		delete(ts.calls, principal)
	}
}

// add adds a task that this process serves from now on. From time to time it removes expired files, in the
// background.
func (s *Session) add(t *task) {
	ts := s.server.Tasks
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID[t.file.ID] = t
	if time.Since(ts.swept) < sweepEvery {
		return
	}
	ts.swept = time.Now()
	s.Go(func() {
		if err := ts.store.Sweep(time.Now()); err != nil {
			s.Log().Warn("expired tasks", "error", err)
		}
	})
}

// live returns the task with an id if this process serves it and it belongs to the session's principal, and nil
// otherwise.
func (s *Session) live(id string) *task {
	ts := s.server.Tasks
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byID[id]; t != nil && t.call.session.principal() == s.principal() {
		return t
	}
	return nil
}

// forget removes a finished task, which is then served from its file. With late, that is after others
// of the kind: one of its questions had no answer in time.
func (ts *Tasks) forget(id string, late bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if late {
		ts.ended = append(ts.ended, id)
		if len(ts.ended) <= maxLate {
			return
		}
		id, ts.ended = ts.ended[0], ts.ended[1:]
	}
	delete(ts.byID, id)
}
