package mcp

import (
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/slots"
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

// task is a call that its client polls, or only the file of a task that this process does not serve. The call's mutex
// guards it.
type task struct {
	session   *Session
	call      *call           // nil for a file
	owner     taskfile.Owner  // of a file
	resume    taskfile.Resume // for the next server, without the turn
	file      taskfile.Task   // as last written, or at its end perhaps only in memory
	cancelled bool            // by the client
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
	t := &task{session: c.session, call: c, resume: taskfile.Resume{Form: c.inbox.canAsk, Host: c.call.Host}}
	changed := now.Changed()
	file, err := c.session.newFile(c.tool, now, t.resume)
	if err != nil {
		c.session.Log().Warn("a call does not become a task", "error", err)
		c.update(func() { c.taskable, c.late, c.outlet.quiet = false, false, false }) // the request has a deadline now
		return nil
	}
	t.file = file
	c.session.add(t)
	var created *modern.CreateTaskResult
	c.update(func() {
		c.alone = true
		created = t.shared(c.words()).Created()
		created.Meta, created.Status = c.session.server.meta(), c.status(can)
	})
	t.keep(now, changed)
	return created
}

// keep keeps the file of the task until the end of its turn, and then writes the result of the call.
func (t *task) keep(now *turn.Turn, changed <-chan struct{}) {
	t.session.Go(func() {
		t.session.keep(now, changed, t.file, t.resume, func(file taskfile.Task) {
			t.call.mu.Lock()
			defer t.call.mu.Unlock()
			t.file = file
		})
		<-t.call.done
		t.end()
	})
}

// newFile writes the first file of a turn of a call of a tool, with a new id, and what it has done.
func (s *Session) newFile(tool string, now *turn.Turn, r taskfile.Resume) (file taskfile.Task, err error) {
	file = taskfile.Task{Principal: s.principal(), Tool: tool, Status: modern.TaskStatusWorking, Message: "in the background"}
	says(&file, now, r)
	if file.ID, err = taskfile.NewID(now.ThreadID()); err != nil {
		return file, err
	}
	return s.server.Tasks.store.Create(file)
}

// says makes a file say what its turn does and has done.
func says(file *taskfile.Task, now *turn.Turn, r taskfile.Resume) {
	if state := now.State(); !r.Background {
		file.Status, file.Message = modern.TaskStatusWorking, state.Words()
		if state.Status == protocol.StatusWaiting {
			file.Status = modern.TaskStatusInputRequired
		}
	}
	file.Did, file.Resume = now.Did(), nil
	if r.Turn = now.Resume(); r.Turn != nil { // another server can continue it
		file.Resume = &r
	}
}

// keep writes into a file what its turn does until it ends. It begins when something changes, so that the file of a server
// that was killed has what ran but for the last milliseconds, which the log of approvals has. Changed is closed when something has since the file was written. Kept gets each file.
func (s *Session) keep(now *turn.Turn, changed <-chan struct{}, file taskfile.Task, r taskfile.Resume, kept func(taskfile.Task)) {
	ticker := time.NewTicker(fileTick)
	defer ticker.Stop()
	for {
		next := file
		select {
		case <-changed:
			changed = now.Changed()
			says(&next, now, r)
		case <-ticker.C:
			if says(&next, now, r); next.Message == file.Message {
				continue
			}
		case <-now.Done():
			return
		}
		var err error
		if file, err = s.server.Tasks.store.Update(next); err != nil { // it is kept in memory
			s.Log().Warn("the file of a task", "task", file.ID, "error", err)
		}
		kept(file)
	}
}

// keepInBackground keeps the file of a turn in the background, which nobody polls, and removes it at the end.
func (s *Session) keepInBackground(now *turn.Turn, changed <-chan struct{}, file taskfile.Task, r taskfile.Resume) {
	s.Go(func() {
		s.keep(now, changed, file, r, func(taskfile.Task) {})
		if err := s.server.Tasks.store.Remove(file.ID); err != nil {
			s.Log().Warn("the file of a task", "task", file.ID, "error", err)
		}
	})
}

// end writes the result of the task. If it cannot be written the task is kept in memory.
func (t *task) end() {
	c, tasks := t.call, t.call.session.server.Tasks
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
	file.Did, file.Resume = nil, nil // the result has what it did
	file, err := tasks.store.Update(file)
	if err != nil {
		c.session.Log().Error("the end of a task is kept in memory: its file cannot be written", "task", file.ID, "error", err)
	}
	c.update(func() { t.file = file })
	if err == nil { // it is served from its file
		tasks.mu.Lock()
		defer tasks.mu.Unlock()
		delete(tasks.byID, file.ID)
	}
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

// continues reports whether this server continues the work of others.
func (ts *Tasks) continues() bool { return ts != nil && *ts.options.Resume }

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
