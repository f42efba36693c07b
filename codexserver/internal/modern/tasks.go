package modern

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/taskfile"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TaskOptions say how calls become tasks.
type TaskOptions struct {
	// Grace is how long a call is waited for before it becomes a task.
	Grace time.Duration
	// Limit is how many calls that may become tasks, and tasks, of one principal are
	// unfinished at a time.
	Limit int
}

// Tasks are the unfinished tasks of one server. It is safe for concurrent use; nil
// serves none.
type Tasks struct {
	options TaskOptions
	store   *taskfile.Store
	log     func(msg string, args ...any)
	sweeps  sync.WaitGroup

	mu    sync.Mutex
	calls map[string]int // that may become tasks, or are, by principal
	byID  map[string]*task
	swept time.Time
}

// NewTasks returns no tasks yet. They are kept in store.
func NewTasks(store *taskfile.Store, o TaskOptions, warn func(msg string, args ...any)) *Tasks {
	return &Tasks{options: o, store: store, log: warn, calls: map[string]int{}, byID: map[string]*task{}}
}

// serves reports whether there are tasks at all.
func (ts *Tasks) serves() bool { return ts != nil }

// enter counts a call of a principal that may become a task. It is to leave at its end.
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

// create writes the file of a task, which is served from then on.
func (ts *Tasks) create(f taskfile.Task, t *task) (taskfile.Task, error) {
	written, err := ts.store.Create(f)
	if err != nil {
		return written, fmt.Errorf("keep the task: %w", err)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID[written.ID] = t
	ts.sweep()
	return written, nil
}

// sweepEvery is how often expired files are removed.
const sweepEvery = time.Hour

// sweep removes expired files, in the background. ts.mu is held.
func (ts *Tasks) sweep() {
	if time.Since(ts.swept) < sweepEvery {
		return
	}
	ts.swept = time.Now()
	ts.sweeps.Go(func() {
		if err := ts.store.Sweep(context.Background()); err != nil {
			ts.log("expired tasks", "error", err)
		}
	})
}

// Wait waits for the goroutines that run apart from the calls.
func (ts *Tasks) Wait() {
	if ts != nil {
		ts.sweeps.Wait()
	}
}

// live returns a task that this process serves, nil when it serves none of that id.
func (ts *Tasks) live(id string) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byID[id]
}

// finish writes the end of a task.
func (ts *Tasks) finish(f *taskfile.Task) error {
	written, err := ts.store.Update(*f)
	if err != nil {
		now := time.Now()
		f.Updated, f.Expires = now, now.Add(taskfile.Keep)
		return err
	}
	*f = written
	return nil
}

// forget leaves a finished task to its file.
func (ts *Tasks) forget(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byID, id)
}
