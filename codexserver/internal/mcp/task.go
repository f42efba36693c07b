package mcp

import (
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// questionLife is how long the questions of a call that may become a task stay open. It is
// long, because the user of a task only looks from time to time.
const questionLife = time.Hour

// task is a call that its client polls, a turn in the background, which has a file for the next server, or only the file
// of a task that this process does not serve. The mutex of the session's calls guards it.
type task struct {
	session   *Session
	call      *call          // which has its turn; nil for a turn in the background, and for a file
	owner     taskfile.Owner // of a file
	file      taskfile.Task  // as last written, or at its end perhaps only in memory
	cancelled bool           // by the client
}

// becomeTask makes the call a task and returns the answer for its client, which
// can be asked, or not. It returns nil if the thread has not begun, or if the task's
// file cannot be written, which is logged. The call is then answered with its result.
func (c *call) becomeTask(can bool) *modern.CreateTaskResult {
	c.mu.Lock()
	now := c.turn
	c.late = c.late && now == nil
	c.mu.Unlock()
	if now == nil || c.call.InBackground() { // which is answered soon
		return nil
	}
	t := &task{session: c.session, call: c, file: taskfile.Task{Tool: c.tool, Resume: &taskfile.Resume{Form: c.inbox.canAsk, Host: c.call.Host}}}
	if err := t.create(now); err != nil {
		c.session.Log().Warn("a call does not become a task", "error", err)
		c.update(func() { c.taskable, c.late, c.outlet.quiet = false, false, false }) // the request has a deadline now
		return nil
	}
	var created *modern.CreateTaskResult
	c.update(func() {
		c.alone = true
		created = t.shared(now.State().Line()).Created()
		created.Meta, created.Status = c.session.server.meta(), c.status(can)
	})
	return created
}

// create writes the first file of the turn, with a new id and what it has done, and keeps it.
func (t *task) create(now *turn.Turn) (err error) {
	changed := now.Changed()
	t.file.Principal, t.file.Status, t.file.Message = t.session.principal(), modern.TaskStatusWorking, "in the background"
	t.says(&t.file, now)
	if t.file.ID, err = taskfile.NewID(now.ThreadID()); err == nil {
		t.file, err = t.session.server.Tasks.store.Create(t.file)
	}
	if err != nil {
		return err
	}
	t.keep(now, changed)
	return nil
}

// says makes a file say what its turn does and has done.
func (t *task) says(file *taskfile.Task, now *turn.Turn) {
	if state := now.State(); t.call != nil {
		file.Status, file.Message = modern.TaskStatusWorking, state.Words()
		if state.Status == protocol.StatusWaiting {
			file.Status = modern.TaskStatusInputRequired
		}
	}
	file.Did = now.Did()
	if r := now.Resume(); r != nil {
		file.Resume.Turn = *r
	} else { // no other server continues it from now on
		file.Resume = nil
	}
}

// keep writes into the file what its turn does until it ends, and then the result of the call; it removes that of a turn
// in the background. It writes when something changes, so that the file of a server that was killed has what ran but for
// the last milliseconds, which the log of approvals has. Changed is closed when something has since the file was written.
func (t *task) keep(now *turn.Turn, changed <-chan struct{}) {
	if t.call != nil {
		t.session.add(t)
	}
	t.session.Go(func() {
		for !tools.Over(now.Done()) {
			select {
			case <-changed:
				changed = now.Changed()
				file := t.file // only this goroutine changes it
				t.says(&file, now)
				if err := t.write(file); err != nil {
					t.session.Log().Warn("the file of a task", "task", file.ID, "error", err)
				}
			case <-now.Done():
			}
		}
		if t.call != nil {
			<-t.call.done
			t.end()
		} else if err := t.session.server.Tasks.store.Remove(t.file.ID); err != nil {
			t.session.Log().Warn("the file of a task", "task", t.file.ID, "error", err)
		}
	})
}

// write writes the file. After an error it is only in memory.
func (t *task) write(file taskfile.Task) error {
	file, err := t.session.server.Tasks.store.Update(file)
	t.session.calls.mu.Lock()
	defer t.session.calls.mu.Unlock()
	t.file = file
	return err
}

// end writes the result of the task. If it cannot be written the task is kept in memory.
func (t *task) end() {
	c, tasks := t.call, t.session.server.Tasks
	c.mu.Lock()
	file, cancelled := t.file, t.cancelled
	c.mu.Unlock()
	switch fails := c.result.IsError != nil && *c.result.IsError; {
	case cancelled:
		file.Status, file.Message = modern.TaskStatusCancelled, "cancelled by the client"
	case fails && c.session.ctx.Err() != nil: // another process may read it, which does not know that this server was stopped
		if c.turn != nil {
			file.Did = c.turn.Did()
		}
		t.session.lose(&file)
	default:
		result, _ := modern.Encode(t.session.server.complete(c.result)) // its parts always encode
		file.Status, file.Message, file.Result = modern.TaskStatusCompleted, "done", jsontext.Value(result)
		if fails {
			file.Message = "ended with an error"
		}
	}
	file.Did, file.Resume = protocol.TurnResult{}, nil // the result has what it did
	err := t.write(file)
	c.update(func() {}) // for those who follow it
	if err != nil {
		c.session.Log().Error("the end of a task is kept in memory: its file cannot be written", "task", file.ID, "error", err)
		return
	}
	tasks.mu.Lock() // it is served from its file
	defer tasks.mu.Unlock()
	delete(tasks.byID, file.ID)
}

// sweepEvery is how often expired files are removed.
const sweepEvery = time.Hour

// Tasks has the unfinished tasks of one server. It is safe for concurrent use. Nil disables
// tasks.
type Tasks struct {
	options setting.Tasks // with its defaults
	store   *taskfile.Store
	limit   *slots.Limit // by principal: calls that are tasks or may become one

	mu    sync.Mutex
	byID  map[string]*task
	swept time.Time

	adopting chan struct{} // has an element while a task of another server is taken over
}

// NewTasks returns an empty Tasks. Their files are in store.
func NewTasks(store *taskfile.Store, o setting.Tasks) *Tasks {
	o = o.Resolved()
	limit := slots.NewLimit(o.Limit, "limits.tasks: %d tasks are unfinished, and no more may be; nothing was started")
	return &Tasks{options: o, store: store, limit: limit, byID: map[string]*task{}, adopting: make(chan struct{}, 1)}
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
