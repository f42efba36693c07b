package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Tasks has the unfinished tasks of one server. It is safe for concurrent use. Nil disables
// tasks.
type Tasks struct {
	options setting.Tasks // with its defaults; its limit is also for calls that may become a task
	store   *taskfile.Store
	log     func(msg string, args ...any)
	observe Observe
	sweeps  sync.WaitGroup

	mu    sync.Mutex
	calls map[string]int // by principal: calls that are tasks or may become one
	byID  map[string]*task
	ended []string // ids in byID of tasks that have ended, for answers that are late
	swept time.Time

	adopting chan struct{} // has an element while a task of another server is taken over
}

// Observe returns the observer of a turn that another server began with a call of a tool of a principal.
type Observe func(principal, tool string) thread.CallObserver

// NewTasks returns an empty Tasks. Their files are in store. Nil observes nothing of what continues here.
func NewTasks(store *taskfile.Store, o setting.Tasks, warn func(msg string, args ...any), observe Observe) *Tasks {
	return &Tasks{options: o.Resolved(), store: store, log: warn, observe: observe, calls: map[string]int{}, byID: map[string]*task{}, adopting: make(chan struct{}, 1)}
}

// observed returns a context for the turn of a task that another server began.
func (ts *Tasks) observed(ctx context.Context, f taskfile.Task) context.Context {
	if ts.observe == nil {
		return ctx
	}
	return thread.Observed(ctx, ts.observe(f.Principal, f.Tool))
}

// serves reports whether tasks are enabled.
func (ts *Tasks) serves() bool { return ts != nil }

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

// adopt waits until no task of another server is being taken over, and lets none be until it
// is released. It returns false if ctx ends first.
func (ts *Tasks) adopt(ctx context.Context) (release func(), ok bool) {
	select {
	case ts.adopting <- struct{}{}:
		return func() { <-ts.adopting }, true
	case <-ctx.Done():
		return nil, false
	}
}

// add adds a task that this process serves from now on.
func (ts *Tasks) add(t *task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID[t.file.ID] = t
	ts.sweep()
}

// sweepEvery is how often expired files are removed.
const sweepEvery = time.Hour

// sweep removes expired files in the background. The caller holds ts.mu.
func (ts *Tasks) sweep() {
	if time.Since(ts.swept) < sweepEvery {
		return
	}
	ts.swept = time.Now()
	ts.sweeps.Go(func() {
		if err := ts.store.Sweep(context.Background(), time.Now()); err != nil {
			ts.log("expired tasks", "error", err)
		}
	})
}

// Wait waits for the removal of expired files.
func (ts *Tasks) Wait() {
	if ts != nil {
		ts.sweeps.Wait()
	}
}

// live returns the task with an id if this process serves it, and nil otherwise.
func (ts *Tasks) live(id string) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byID[id]
}

// create writes the first file of a turn, with a new id, and what it has done. News is closed when there is some
// since.
func (ts *Tasks) create(turn *tools.Turn, f taskfile.Task, r resume) (written taskfile.Task, news <-chan struct{}, err error) {
	_, news = turn.Asks() // before the file says what it is
	if f.ID, err = taskfile.NewID(turn.ThreadID()); err != nil {
		return f, nil, err
	}
	f.Did, f.Resume = turn.Did(), r.encode(turn)
	f, err = ts.store.Create(f)
	return f, news, err
}

// update writes the file of a turn, with what it has done, and for no next server if it is cancelled. If that fails
// the task is kept in memory.
func (ts *Tasks) update(turn *tools.Turn, f taskfile.Task, r resume, cancelled bool) taskfile.Task {
	f.Did, f.Resume = turn.Did(), nil
	if !cancelled {
		f.Resume = r.encode(turn)
	}
	written, err := ts.store.Update(f)
	if err != nil {
		ts.log("the file of a task", "task", f.ID, "error", err)
		return f
	}
	return written
}

// follow keeps the file of a turn in the background up to date until its end, which removes the file. News is closed
// when there is some since the file was written.
func (ts *Tasks) follow(turn *tools.Turn, f taskfile.Task, r resume, news <-chan struct{}) {
	for {
		select {
		case <-news:
			_, news = turn.Asks()
			f = ts.update(turn, f, r, false)
		case <-turn.Done():
			if err := ts.store.Remove(f.ID); err != nil {
				ts.log("the file of a task", "task", f.ID, "error", err)
			}
			return
		}
	}
}

// maxLate is how many tasks that have ended are kept for answers that are late.
const maxLate = 64

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
