package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"golang.org/x/time/rate"
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
	// Settings are the settings that all workers share. Its Locked are the arguments that
	// no user may set. The pool sets the fields that differ between users.
	Settings workerlink.Settings
	// Record is the approval log and Trace the trace file. The pool appends the lines of all
	// workers, and stamps them. Nil means that there is no such file.
	Record, Trace *safefile.Log
	// Challenge begins the WWW-Authenticate header of refusals: scheme and realm.
	Challenge string
	// Fenced means that workers only run until the deadlines of [Pool.Extend]. Another process
	// then kills them, also while this one is stopped.
	Fenced bool
	// Limits bound each worker with all that it starts. They need cgroup v2.
	Limits settings.Worker
	// Telemetry records what the pool and its workers do. It may be nil.
	Telemetry *telemetry.Telemetry
	// Stderr receives the standard error of workers. Logger logs their starts and ends.
	Stderr io.Writer
	Logger *slog.Logger
}

// Pool starts and ends workers, and passes requests to them. It is safe for concurrent use.
type Pool struct {
	o       Options
	log     *slog.Logger
	start   func(ctx context.Context, name string) (*worker, error)
	http    atomic.Pointer[settings.HTTP] // see Reload
	running sync.WaitGroup                // all goroutines of the pool
	copies  intake.Buffers

	cgroups *cgroups                                                    // nil without limits
	keeps   func(ctx context.Context, user string) (store.Store, error) // nil: only files

	mu       sync.Mutex
	fence    *fence             // nil unless workers are fenced
	slots    map[string]*slot   // by user; none is removed
	senders  map[string]*sender // by principal
	leaving  bool               // the users go to other nodes
	draining bool
	closed   bool
}

// slot holds the worker of a user.
type slot struct {
	worker    *worker       // the latest; nil before the first start
	attempt   *attempt      // the start that is under way, or nil
	idleCheck chan struct{} // nil unless an idle check is under way; closed at its end
	requests  int           // open ones
	deadline  time.Duration // of Extend
	idleTimer *time.Timer   // runs while no request is open; nil before its first use
	released  time.Time     // when the latest request ended
}

// attempt is one start of a worker.
type attempt struct {
	done   chan struct{} // closed at the end of the start, after err is set
	err    error
	cancel context.CancelFunc // ends the start early
}

// New returns a pool without workers. The caller must close it. New fails if this system
// cannot keep users apart, with [enclosure.ErrUnavailable], or keep one of the limits, or if the paths of one user contain those of another or of the
// server.
func New(o Options) (*Pool, error) {
	if err := enclosure.Try(o.Program); err != nil {
		return nil, err
	}
	if _, err := resolvePaths(o.Home, o.Program, o.Hidden, o.HTTP.Principals); err != nil {
		return nil, err
	}
	p := newPool(o)
	p.start = p.startProcess
	var err error
	if p.cgroups, err = newCgroups(o.Limits); err != nil { // before the fence, which is in the cgroup of this process
		return nil, err
	}
	if o.Fenced {
		if p.fence, err = startFence(o.Stderr); err != nil {
			return nil, fmt.Errorf("start the fence of the workers: %w", err)
		}
	}
	return p, nil
}

// Extend sets the time until which the worker of a user may run, since the machine was started.
// The worker must have a time before it starts. If the fence has ended, the worker is killed.
func (p *Pool) Extend(name string, deadline time.Duration) {
	p.mu.Lock()
	s := p.slots[name]
	if s == nil || !p.o.Fenced {
		p.mu.Unlock()
		return
	}
	s.deadline = deadline
	w := s.worker
	p.mu.Unlock()
	if w == nil || !w.alive() || w.fence == nil {
		return
	}
	if err := w.fence.extend(w.fenced, deadline); err != nil {
		p.log.Error("worker killed", "principal", name, "error", err)
		_ = w.kill() // the fence has ended
	}
}

// addToFence makes the fence kill a process after the deadline of a user. If the fence has ended,
// it starts another one.
func (p *Pool) addToFence(name string, pid int) (f *fence, number uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := p.slots[name].deadline
	if number, err = p.fence.add(pid, deadline); err == nil {
		return p.fence, number, nil
	}
	p.log.Error("the fence of the workers starts again", "error", err)
	if f, err = startFence(p.o.Stderr); err != nil {
		return nil, 0, err
	}
	p.fence.kill()
	_ = p.fence.close() // its status is not looked at
	p.fence = f
	number, err = f.add(pid, deadline)
	return f, number, err
}

// deadline returns the time until which the worker of a user may run.
func (p *Pool) deadline(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[name].deadline
}

// Keep makes workers keep the state of their users in the stores that open returns, each for one
// worker, besides the files of their homes. It must be called before the first request.
func (p *Pool) Keep(open func(ctx context.Context, user string) (store.Store, error)) { p.keeps = open }

func newPool(o Options) *Pool {
	p := &Pool{o: o, log: o.Logger, slots: map[string]*slot{}, senders: map[string]*sender{}}
	p.setUsers(o.HTTP.Principals)
	return p
}

// sender is what a principal may send to the pool.
type sender struct {
	*intake.Usage
	requests *rate.Limiter // nil means no limit
	limit    int           // of requests a second
}

// newSender returns the limits for a number of requests a second.
func newSender(requests int) *sender {
	s := &sender{Usage: intake.NewUsage(), limit: requests}
	if requests > 0 {
		s.requests = rate.NewLimiter(rate.Limit(requests), requests)
	}
	return s
}

// sender returns what a principal may send, or nil for one that is no user.
func (p *Pool) sender(name string) *sender {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.senders[name]
}

// allow counts a request. If the principal sends too many a second, it answers this one, and
// returns false. A reservation says how long the client must wait. A refused request cancels
// its reservation, so that it does not delay later ones.
func (s *sender) allow(w http.ResponseWriter) bool {
	if s.requests == nil {
		return true
	}
	slot := s.requests.Reserve()
	wait := slot.Delay()
	if wait == 0 {
		return true
	}
	slot.Cancel()
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	http.Error(w, "too many requests a second", http.StatusTooManyRequests)
	return false
}

// Request says whose worker a request is for, and who sent it.
type Request struct {
	// User is the user of the worker.
	User string
	// Sender is the user, with its scopes.
	Sender mcphttp.Principal
}

// Serve answers an admitted request. Its context ends when the pool may no longer run the
// user's worker.
func (p *Pool) Serve(w http.ResponseWriter, r *http.Request, of Request) {
	response := intake.NewResponse(w, r)
	a := &admission{principal: of.Sender}
	defer func() { // an answer that breaks off panics
		switch {
		case p.o.Telemetry == nil:
		case a.answered:
			p.o.Telemetry.User(of.User).Report(a.method, response.Status)
		case r.Context().Err() == nil:
			p.o.Telemetry.User("").Report("", response.Status)
		}
	}()
	p.serve(response, r, of.User, a)
}

// serve answers a request.
func (p *Pool) serve(response *intake.Response, r *http.Request, user string, a *admission) {
	from := p.sender(a.principal.Name)
	if from == nil {
		http.Error(response, "this node does not know the user", http.StatusForbidden)
		return
	}
	if !from.allow(response) {
		return
	}
	end, ok := from.Begin(response)
	if !ok {
		return
	}
	defer end()
	release, ok := from.ReadBody(response, r)
	if !ok {
		return
	}
	defer release()
	response.Extend() // reading the body may have used up the timeout
	worker, conn, err := p.connect(r.Context(), user)
	if err != nil {
		if r.Context().Err() == nil {
			p.log.Error("worker unavailable", "principal", user, "error", err)
		}
		unavailable(response)
		return
	}
	defer p.release(user)
	a.conn = conn
	defer func() {
		if a.conn != nil { // the request was not sent
			a.conn.Close()
		}
	}()
	worker.proxy.ServeHTTP(response, a.with(r))
}

// unavailable answers a request that was not sent to a worker.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, UnavailableText, http.StatusServiceUnavailable)
}

// UnavailableText is for a client whose request was not sent to a worker.
const UnavailableText = "the user's worker process could not be started or reached, so the request was not carried out. " +
	"Send it again later. If this error continues, ask the operator of the server, whose log has the reason"

// connect acquires the worker of a user and returns a connection for one request. The
// caller calls [Pool.release] when the request has ended. If the worker is about to end,
// connect waits for its end and uses the next worker. That is safe because the request was
// not sent yet.
func (p *Pool) connect(ctx context.Context, name string) (*worker, *connection, error) {
	for {
		w, err := p.acquire(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		conn, err := w.connections.take(ctx)
		if err == nil {
			return w, conn, nil
		}
		p.release(name)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, nil, err
		}
		select {
		case <-w.exited:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(endTimeout):
			return nil, nil, err
		}
	}
}

var (
	errUnknown = errors.New("no such user")
	errClosed  = errors.New("the server is shutting down")
)

// acquire returns the worker of a user for a request, and starts one if necessary. The pool
// does not end the worker for being idle before [Pool.release] is called.
func (p *Pool) acquire(ctx context.Context, name string) (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		s := p.slots[name]
		if _, known := p.http.Load().Principals[name]; s == nil || !known {
			return nil, errUnknown
		}
		var changed <-chan struct{}
		var a *attempt
		switch {
		case s.idleCheck != nil:
			changed = s.idleCheck
		case s.worker != nil && s.worker.alive():
			s.requests++
			if s.idleTimer != nil {
				s.idleTimer.Stop()
			}
			return s.worker, nil
		case p.draining || p.closed:
			return nil, errClosed
		case ctx.Err() != nil: // the request of a lease that is lost must not start a worker
			return nil, context.Cause(ctx)
		default:
			a = s.attempt
			if a == nil {
				a = &attempt{done: make(chan struct{})}
				starting, cancel := context.WithCancel(context.Background())
				a.cancel = cancel
				s.attempt = a
				p.running.Go(func() { p.fill(starting, name, s, a) })
			}
			changed = a.done
		}
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.mu.Lock()
		if err == nil && a != nil {
			err = a.err
		}
		if err != nil {
			return nil, err
		}
	}
}

// release ends the use of a worker that [Pool.acquire] returned.
func (p *Pool) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[name]
	s.requests--
	s.released = time.Now()
	p.startIdleTimer(name, s)
}

// startIdleTimer starts the time after which endIdle is called, unless a request is open.
// The caller holds p.mu.
func (p *Pool) startIdleTimer(name string, s *slot) {
	if s.requests > 0 || p.o.HTTP.WorkerIdle <= 0 {
		return
	}
	if s.idleTimer == nil {
		s.idleTimer = time.AfterFunc(p.o.HTTP.WorkerIdle, func() { p.endIdle(name, s, false) })
		return
	}
	s.idleTimer.Reset(p.o.HTTP.WorkerIdle)
}

// endIdle asks a worker without requests whether it is idle, and ends it if so. New
// requests wait for the answer: a busy worker receives them, or else the next worker. While
// the pool drains, it does so only if move is set. It returns what is closed after that, or nil if it
// does not ask.
func (p *Pool) endIdle(name string, s *slot, move bool) (done <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.requests > 0 || s.idleCheck != nil || s.worker == nil || !s.worker.alive() || p.draining && !move || p.closed {
		return nil
	}
	w := s.worker
	s.idleCheck = make(chan struct{})
	p.running.Go(func() {
		load, ok := w.load(context.Background())
		idle := ok && load.Idle()
		if idle {
			p.log.Info("worker is idle", "principal", name)
			w.end(endTimeout)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		close(s.idleCheck)
		s.idleCheck = nil
		if !idle {
			p.startIdleTimer(name, s)
		}
	})
	return s.idleCheck
}

// fill starts a worker for a slot. Requests wait for the end of the attempt.
func (p *Pool) fill(ctx context.Context, name string, s *slot, a *attempt) {
	defer close(a.done)
	defer a.cancel()
	w, err := p.start(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.attempt, a.err = nil, err
	if err == nil {
		s.worker = w
		if p.o.Fenced { // it may have changed meanwhile
			defer p.running.Go(func() { p.Extend(name, p.deadline(name)) })
		}
		p.log.Info("worker started", "principal", name, "process", w.process)
		p.startIdleTimer(name, s)
	}
}

// Kill kills the worker of a user, and returns when the worker and all its processes have
// ended. Its turns have no end, so the next worker continues them. The contexts of all requests for the user must have ended before.
func (p *Pool) Kill(name string) {
	p.mu.Lock()
	s := p.slots[name]
	if s == nil {
		p.mu.Unlock()
		return
	}
	a, w := s.attempt, s.worker
	p.mu.Unlock()
	if a != nil {
		a.cancel()
		<-a.done
		p.mu.Lock()
		w = s.worker
		p.mu.Unlock()
	}
	if w != nil {
		_ = w.kill()
		// Only now may it learn that it ends: it must not record the ends of its turns. The signal goes to the first
		// process of the enclosure, and the worker runs until that one is gone.
		<-w.exited
		w.end(0)
	}
}

// Running returns the users whose worker runs or starts, or who have a request.
func (p *Pool) Running() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.slots {
		if s.requests > 0 || s.attempt != nil || s.worker != nil && s.worker.alive() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// EndIdle ends the worker of a user if it has no request, no session and no running work. It
// does not wait for that: done is closed then, or nil if there is nothing to do.
func (p *Pool) EndIdle(name string) (done <-chan struct{}) {
	p.mu.Lock()
	s := p.slots[name]
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	return p.endIdle(name, s, true)
}

// Idle returns the users whose worker runs, has no session and no turn, and has had no request for so long.
func (p *Pool) Idle(ctx context.Context, quiet time.Duration) (names []string) {
	loads := p.Loads(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, load := range loads {
		s := p.slots[name]
		if load.Idle() && s.worker.work.turns.Load() == 0 && s.requests == 0 && time.Since(s.released) >= quiet {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Leave says that the users go to other nodes, for [Pool.Draining]. The pool serves them until then.
func (p *Pool) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
}

// Draining reports whether [Pool.Drain] or [Pool.Leave] was called.
func (p *Pool) Draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining || p.leaving
}

// Loads returns the loads of the running workers, by user. It leaves out a worker that does
// not answer in time.
func (p *Pool) Loads(ctx context.Context) map[string]workerlink.Load {
	ctx, cancel := context.WithTimeout(ctx, loadsTimeout)
	defer cancel()
	running := map[string]*worker{}
	p.mu.Lock()
	for name, s := range p.slots {
		if s.worker != nil && s.worker.alive() {
			running[name] = s.worker
		}
	}
	p.mu.Unlock()
	var mu sync.Mutex
	var asking sync.WaitGroup
	loads := map[string]workerlink.Load{}
	for name, w := range running {
		asking.Go(func() {
			if l, ok := w.load(ctx); ok {
				mu.Lock()
				defer mu.Unlock()
				loads[name] = l
			}
		})
	}
	asking.Wait()
	return loads
}

// loadsTimeout limits the time that workers have to report their loads.
const loadsTimeout = 2 * time.Second

// Drain waits until all workers have finished their running work. From then on the pool
// starts no workers, and workers accept no new work, but they still accept answers to
// questions and requests for tasks. Drain fails if ctx ends first.
func (p *Pool) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	for _, w := range p.workers() {
		w.drain()
	}
	for _, w := range p.workers() {
		select {
		case <-w.drained:
		case <-w.exited:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// workers returns all workers, by user. It first waits for the starts that are under way.
func (p *Pool) workers() map[string]*worker {
	p.mu.Lock()
	slots := maps.Clone(p.slots)
	p.mu.Unlock()
	all := map[string]*worker{}
	for name, s := range slots {
		p.mu.Lock()
		a := s.attempt
		p.mu.Unlock()
		if a != nil {
			<-a.done
		}
		p.mu.Lock()
		if s.worker != nil {
			all[name] = s.worker
		}
		p.mu.Unlock()
	}
	return all
}

// Close ends all workers and their running work, and waits for their ends.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, w := range p.workers() {
		ending.Go(func() { w.end(endTimeout) })
	}
	ending.Wait()
	p.running.Wait()
	if p.fence != nil {
		return p.fence.close()
	}
	return nil
}
