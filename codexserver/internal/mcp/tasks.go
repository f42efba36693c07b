package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

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
