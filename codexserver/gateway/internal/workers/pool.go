package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Options configure a [Pool].
type Options struct {
	// Home is the server's $CODEX_HOME.
	Home string
	// HTTP configures the users at the start. See [Pool.Reload].
	HTTP settings.HTTP
	// Program is the path of codex-mcp, which runs as the worker. New runs it with --version.
	Program string
	// Hidden are files and folders of the server that workers must not see.
	Hidden []string
	// Settings are the settings that all workers share. The pool sets the fields that differ between users.
	Settings worker.Settings
	// Record is the path of the approval log, which workers must not see either. The pool appends the lines of all
	// workers, and stamps them. "" means that there is none.
	Record string
	// Challenge begins the WWW-Authenticate header of refusals: scheme and realm.
	Challenge string
	// Metrics counts the starts of workers.
	Metrics *metrics.Metrics
	// Stderr receives the standard error of workers. Logger logs their starts and ends.
	Stderr io.Writer
	Logger *slog.Logger
}

// Pool starts and ends workers, and passes requests to them. It is safe for concurrent use.
type Pool struct {
	o       Options
	log     *slog.Logger
	start   func(ctx context.Context, name string) (*process, error)
	http    atomic.Pointer[settings.HTTP] // see Reload
	running sync.WaitGroup                // all goroutines of the pool
	copies  buffers
	keeps   func(ctx context.Context, user string) (worker.Store, error)
	record  *safefile.Log // nil without one

	mu     sync.Mutex
	slots  map[string]*slot // by user; none is removed
	closed bool
}

// slot holds the worker of a user.
type slot struct {
	worker    *process      // the latest; nil before the first start
	change    *change       // that is under way, or nil
	requests  int           // open ones
	changing  int           // those of them that [worker.MakesBusy]
	deadline  time.Duration // of Extend
	idleTimer *time.Timer   // runs while no request is open; nil before its first use
}

// change is a start of a worker, or an idle check, which may end it. Requests wait for its end.
type change struct {
	done   chan struct{} // closed at the end, after err is set
	err    error         // why a worker did not start
	cancel context.CancelFunc
}

// begin begins a change of a slot that has none. do makes it, and returns the next worker, or the same. The caller
// holds p.mu.
func (p *Pool) begin(name string, s *slot, do func(context.Context) (*process, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &change{done: make(chan struct{}), cancel: cancel}
	s.change = c
	p.running.Go(func() {
		defer cancel()
		defer close(c.done)
		w, err := do(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		s.change, c.err = nil, err
		if err == nil {
			s.worker = w
			w.extend(s.deadline) // it may have changed meanwhile
			p.startIdleTimer(name, s)
		}
	})
}

// New returns a pool without workers. The caller must close it. New fails if this system
// cannot keep users apart, with [enclosure.ErrUnavailable], or if the paths of one user contain those of another or of the
// server.
func New(o Options) (*Pool, error) {
	if err := enclosure.Try(o.Program); err != nil {
		return nil, err
	}
	var err error
	if o.Record != "" {
		if o.Record, err = filepath.Abs(o.Record); err != nil {
			return nil, err
		}
		o.Hidden = append(o.Hidden, o.Record)
	}
	p := newPool(o)
	p.start = p.startProcess
	if _, err = p.check(o.HTTP.Principals); err == nil && o.Record != "" {
		// a file that is renamed would no longer be hidden
		if p.record, err = safefile.OpenLog(o.Record, 0); err != nil {
			err = fmt.Errorf("approvals.log: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newPool(o Options) *Pool {
	p := &Pool{o: o, log: o.Logger, slots: map[string]*slot{}}
	p.setUsers(o.HTTP.Principals)
	return p
}

// Keep makes workers keep the state of their users in the stores that open returns, each for one
// worker, besides the files of their homes. It must be called before the first request.
func (p *Pool) Keep(open func(ctx context.Context, user string) (worker.Store, error)) {
	p.keeps = open
}

// Extend sets the time until which the worker of a user may run, since the machine was started.
// The worker must have a time before it starts.
func (p *Pool) Extend(name string, deadline time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[name]; s != nil {
		s.deadline = deadline
		s.worker.extend(deadline)
	}
}

// Serve answers a request of a user whom a front has admitted. Its context ends when the pool may no longer run the
// user's worker.
func (p *Pool) Serve(w http.ResponseWriter, r *http.Request, user mcphttp.Principal) {
	c := &call{user: user, changes: worker.MakesBusy(r.Header)}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	r.Body = io.NopCloser(r.Body) // it may be for the next worker
	for {
		to, err := p.acquire(r.Context(), user.Name, c.changes)
		if err == nil {
			if err = p.send(w, r, to, c); err == nil {
				return
			}
			if to.gone(r.Context()) {
				continue
			}
		}
		if r.Context().Err() == nil {
			p.log.Error("worker unavailable", "principal", user.Name, "error", err)
		}
		w.Header().Set("Retry-After", "5")
		http.Error(w, UnavailableText, http.StatusServiceUnavailable)
		return
	}
}

// send sends a request to a worker that acquire returned. An error means that the worker could not get it, and that
// nothing was written.
func (p *Pool) send(w http.ResponseWriter, r *http.Request, to *process, c *call) error {
	defer p.release(c.user.Name, c.changes) // an answer that breaks off panics
	c.unsent = nil
	to.proxy.ServeHTTP(w, r)
	return c.unsent
}

var (
	errUnknown = errors.New("no such user")
	errClosed  = errors.New("the server is shutting down")
)

// acquire returns the worker of a user for a request, and starts one if necessary. The pool
// does not end the worker for being idle before [Pool.release] is called.
func (p *Pool) acquire(ctx context.Context, name string, changes bool) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		s := p.slots[name]
		if s == nil || !p.Knows(name) {
			return nil, errUnknown
		}
		if s.change == nil {
			switch {
			case s.worker != nil && s.worker.alive():
				s.requests++
				if changes {
					s.changing++
				}
				if s.idleTimer != nil {
					s.idleTimer.Stop()
				}
				return s.worker, nil
			case p.closed:
				return nil, errClosed
			case ctx.Err() != nil: // the request of a lease that is lost must not start a worker
				return nil, context.Cause(ctx)
			}
			p.begin(name, s, func(ctx context.Context) (*process, error) { return p.startWorker(ctx, name) })
		}
		c := s.change
		p.mu.Unlock()
		var err error
		select {
		case <-c.done:
			err = c.err
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// startWorker starts the worker of a user, counts it and logs it.
func (p *Pool) startWorker(ctx context.Context, name string) (*process, error) {
	w, err := p.start(ctx, name)
	p.o.Metrics.Started(err)
	if err == nil {
		p.log.Info("worker started", "principal", name, "process", w.pid)
	}
	return w, err
}

// release ends the use of a worker that [Pool.acquire] returned.
func (p *Pool) release(name string, changes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[name]
	s.requests--
	if changes {
		s.changing--
	}
	p.startIdleTimer(name, s)
}

// startIdleTimer starts the time after which endIdle is called, unless a request is open.
// The caller holds p.mu.
func (p *Pool) startIdleTimer(name string, s *slot) {
	if s.requests > 0 || p.o.HTTP.WorkerIdle <= 0 {
		return
	}
	if s.idleTimer == nil {
		s.idleTimer = time.AfterFunc(p.o.HTTP.WorkerIdle, func() { p.EndIdle(name) })
		return
	}
	s.idleTimer.Reset(p.o.HTTP.WorkerIdle)
}

// EndIdle asks a worker without requests whether it is idle, and ends it if so. New requests wait for the answer: a
// busy worker receives them, or else the next worker. It does not wait for the answer itself.
func (p *Pool) EndIdle(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[name]
	if s == nil || s.requests > 0 || s.change != nil || s.worker == nil || !s.worker.alive() || p.closed {
		return
	}
	w := s.worker
	p.begin(name, s, func(ctx context.Context) (*process, error) {
		if load, err := w.load(ctx); err == nil && load.Activity == worker.Idle {
			p.log.Info("worker is idle", "principal", name)
			w.end(endTimeout)
		}
		return w, nil
	})
}

// deadline returns the time until which the worker of a user may run.
func (p *Pool) deadline(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[name].deadline
}

// Kill kills the worker of a user, and returns when the worker and all its processes have
// ended. Its turns have no end, so the next worker continues them. The contexts of all requests for the user must have ended before.
func (p *Pool) Kill(name string) {
	for {
		p.mu.Lock()
		var c *change
		var w *process
		if s := p.slots[name]; s != nil {
			c, w = s.change, s.worker
		}
		p.mu.Unlock()
		if c != nil {
			c.cancel()
		}
		if w != nil {
			_ = w.kill()
			// It must not learn that it ends: it would record the ends of its turns. The signal goes to the first
			// process of the enclosure, and the worker runs until that one is gone.
			<-w.exited
		}
		if c == nil {
			return
		}
		<-c.done // perhaps with another worker
	}
}

// Running returns the users whose worker runs or starts, or who have a request.
func (p *Pool) Running() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.slots {
		if s.requests > 0 || s.change != nil || s.worker != nil && s.worker.alive() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Activity returns what the worker of a user does. A user without a worker is idle. A worker that starts, or does not
// answer, or to which a request is on its way, is busy; and so is one with a request that begins a turn or answers a
// question, because it has the request some time before it knows that.
func (p *Pool) Activity(ctx context.Context, name string) worker.Activity {
	p.mu.Lock()
	s := p.slots[name]
	var w *process
	var sent int
	var busy bool
	if s != nil {
		w, sent, busy = s.worker, s.requests, s.change != nil || s.changing > 0
	}
	p.mu.Unlock()
	switch {
	case busy:
		return worker.Busy
	case w == nil || !w.alive():
		return worker.Idle
	}
	load, err := w.load(ctx)
	known := []worker.Activity{worker.Waiting, worker.Connected, worker.Idle}
	if err != nil || load.Requests < sent || !slices.Contains(known, load.Activity) {
		return worker.Busy
	}
	return load.Activity
}

// loadsTimeout limits the time that workers have to report their loads.
const loadsTimeout = 2 * time.Second

// Loads returns the loads of the running workers. It leaves out a worker that does not answer in time.
func (p *Pool) Loads(ctx context.Context) (all []worker.Load) {
	ctx, cancel := context.WithTimeout(ctx, loadsTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, w := range p.workers() {
		if !w.alive() {
			continue
		}
		asking.Go(func() {
			if l, err := w.load(ctx); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, l)
			}
		})
	}
	asking.Wait()
	return all
}

// workers returns all workers, by user.
func (p *Pool) workers() map[string]*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*process{}
	for name, s := range p.slots {
		if s.worker != nil {
			all[name] = s.worker
		}
	}
	return all
}

// Close ends all workers and their running work, and waits for their ends.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	slots := slices.Collect(maps.Values(p.slots))
	p.mu.Unlock()
	for _, s := range slots {
		p.running.Go(func() {
			p.mu.Lock()
			c := s.change
			p.mu.Unlock()
			if c != nil {
				<-c.done
			}
			if w := s.worker; w != nil { // the last one
				w.end(endTimeout)
			}
		})
	}
	p.running.Wait()
	if log := p.record; log != nil {
		p.record = nil // a start that fails closes the pool twice
		return log.Close()
	}
	return nil
}
