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

// turnFile is the file of a turn that may outlive this server, for the next one: of a task, or of a turn in the background.
type turnFile struct {
	session *Session
	// task is what was last written, or at its end is perhaps only in memory. The mutex of the session's calls guards it.
	task taskfile.Task
}

// create writes the first file of a turn, with a new id, which says what the turn has done. Changed is closed when it has
// done more.
func (f *turnFile) create(t *turn.Turn, says func(*taskfile.Task, *turn.Turn)) (changed <-chan struct{}, err error) {
	changed = t.Changed()
	f.task.Principal, f.task.Status = f.session.principal(), modern.TaskStatusWorking
	says(&f.task, t)
	if f.task.ID, err = taskfile.NewID(t.ThreadID()); err != nil {
		return nil, err
	}
	f.task, err = f.session.server.Tasks.store.Create(f.task)
	return changed, err
}

// says makes a file say what a turn has done.
func says(file *taskfile.Task, t *turn.Turn) {
	file.Did = t.Did()
	resume := t.Resume()
	if resume == nil { // no other server continues it from now on
		file.Resume = nil
		return
	}
	file.Resume.Turn = *resume
}

// saysWork makes a file say what a turn does and has done.
func saysWork(file *taskfile.Task, t *turn.Turn) {
	state := t.State()
	file.Status, file.Message = modern.TaskStatusWorking, state.Words()
	if state.Status == protocol.StatusWaiting {
		file.Status = modern.TaskStatusInputRequired
	}
	says(file, t)
}

// follow writes into the file what its turn says, until the turn ends. It writes when something changes, so that the file of
// a server that was killed has what ran but for the last milliseconds, which the log of approvals has. Changed is closed
// when something has since the file was written.
func (f *turnFile) follow(t *turn.Turn, changed <-chan struct{}, says func(*taskfile.Task, *turn.Turn)) {
	for !tools.Over(t.Done()) {
		select {
		case <-changed:
			changed = t.Changed()
			file := f.task // only this goroutine changes it
			says(&file, t)
			if err := f.write(file); err != nil {
				f.session.Log().Warn("the file of a task", "task", file.ID, "error", err)
			}
		case <-t.Done():
		}
	}
}

// keepInBackground keeps the file of a turn in the background until it ends, in a goroutine of the session.
func (f *turnFile) keepInBackground(t *turn.Turn, changed <-chan struct{}) {
	f.session.Go(func() {
		f.follow(t, changed, says)
		if err := f.session.server.Tasks.store.Remove(f.task.ID); err != nil {
			f.session.Log().Warn("the file of a task", "task", f.task.ID, "error", err)
		}
	})
}

// write writes the file. After an error it is only in memory.
func (f *turnFile) write(task taskfile.Task) error {
	task, err := f.session.server.Tasks.store.Update(task)
	f.session.calls.mu.Lock()
	defer f.session.calls.mu.Unlock()
	f.task = task
	return err
}

// liveTask is a task that this process serves: a call that its client polls.
type liveTask struct {
	turnFile
	call      *call // which has its turn
	cancelled bool  // by the client; the mutex of the session's calls guards it
}

// becomeTask makes the call a task and returns the answer for its client, which
// can be asked, or not. It returns nil if the thread has not begun, or if the task's
// file cannot be written, which is logged. The call is then answered with its result.
func (c *call) becomeTask(can bool) *modern.CreateTaskResult {
	c.session.calls.mu.Lock()
	begun := c.turn
	c.late = c.late && begun == nil
	c.session.calls.mu.Unlock()
	if begun == nil || c.toolCall.InBackground() { // which is answered soon
		return nil
	}
	resume := &taskfile.Resume{Form: c.inbox.canAsk, Client: c.toolCall.Client}
	t := &liveTask{turnFile: turnFile{session: c.session, task: taskfile.Task{Tool: c.tool, Resume: resume}}, call: c}
	changed, err := t.create(begun, saysWork)
	if err != nil {
		c.session.Log().Warn("a call does not become a task", "error", err)
		c.update(func() { c.taskable, c.late, c.outlet.quiet = false, false, false }) // the request has a deadline now
		return nil
	}
	t.keep(begun, changed)
	var created *modern.CreateTaskResult
	c.update(func() {
		c.alone = true
		created = t.shared(begun.State().Line()).Created()
		created.Meta, created.Status = c.session.server.meta(), c.status(can)
	})
	return created
}

// keep serves the task, and keeps its file until it has the result of the call, in a goroutine of the session.
func (t *liveTask) keep(begun *turn.Turn, changed <-chan struct{}) {
	t.session.add(t)
	t.session.Go(func() {
		t.follow(begun, changed, saysWork)
		<-t.call.done
		t.end()
	})
}

// end writes the result of the task. If it cannot be written the task is kept in memory.
func (t *liveTask) end() {
	c, tasks := t.call, t.session.server.Tasks
	c.session.calls.mu.Lock()
	file, cancelled := t.task, t.cancelled
	c.session.calls.mu.Unlock()
	switch fails := c.result.IsError != nil && *c.result.IsError; {
	case cancelled:
		file.Status, file.Message = modern.TaskStatusCancelled, "cancelled by the client"
		c.toolCall.GaveUp()
	case fails && c.session.ctx.Err() != nil:
		// Another process may read the file, which does not know that this server was stopped.
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
		c.toolCall.Answered() // whoever polls the task has the result from then on
	}
	file.Did, file.Resume = protocol.TurnResult{}, nil // the result has what it did
	err := t.write(file)
	c.update(func() {}) // for those who follow it
	if err != nil {
		const words = "the end of a task is kept in memory: its file cannot be written"
		c.session.Log().Error(words, "task", file.ID, "error", err)
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
	byID  map[string]*liveTask
	swept time.Time

	adopting chan struct{} // has an element while a task of another server is taken over
}

// NewTasks returns an empty Tasks. Their files are in store.
func NewTasks(store *taskfile.Store, o setting.Tasks) *Tasks {
	o = o.Resolved()
	limit := slots.NewLimit(o.Limit, "limits.tasks: %d tasks are unfinished, and no more may be; nothing was started")
	return &Tasks{
		options: o, store: store, limit: limit, byID: map[string]*liveTask{}, adopting: make(chan struct{}, 1),
	}
}

// add adds a task that this process serves from now on. From time to time it removes expired files, in the
// background.
func (s *Session) add(t *liveTask) {
	ts := s.server.Tasks
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID[t.task.ID] = t
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
func (s *Session) live(id string) *liveTask {
	ts := s.server.Tasks
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byID[id]; t != nil && t.session.principal() == s.principal() {
		return t
	}
	return nil
}
