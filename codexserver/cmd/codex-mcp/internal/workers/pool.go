package workers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

// Options say for whom a [Pool] has workers.
type Options struct {
	// Home is the server's $CODEX_HOME.
	Home string
	// HTTP names the users.
	HTTP config.HTTP
	// Hidden are files and folders of the server's that no user sees.
	Hidden []string
	// Order has what is the same for all. Its Locked are the arguments that are
	// locked everywhere.
	Order Order
	// Record and Trace are appended to by all workers. Nil means none.
	Record, Trace *os.File
	// Guard says who may. Its principals are those of HTTP.
	Guard *streamable.Guard
	// Challenge is the WWW-Authenticate of the guard's refusals, with its scheme and realm.
	Challenge string
	// Report is called with each request that no worker answered. Nil is not called.
	Report func(streamable.Report)
	// Stderr gets what workers say, Logger what becomes of them.
	Stderr io.Writer
	Logger *slog.Logger
}

// Pool hands requests to workers. It is safe for concurrent use.
type Pool struct {
	o       Options
	log     *slog.Logger
	launch  func(name string) (*worker, error)
	running sync.WaitGroup // starts, ends, and what waits for processes

	mu       sync.Mutex
	seats    map[string]*seat
	clients  map[string]*client // by user
	draining bool
	closed   bool
}

// seat is where a user's worker is, or is to be.
type seat struct {
	worker *worker       // nil before the first
	start  *attempt      // nil while none is under way
	rest   chan struct{} // nil unless the worker is asked whether it is idle; closed then
	open   int           // requests
	timer  *time.Timer   // for the time without a request; nil before the first
}

// attempt is one start of a worker.
type attempt struct {
	done chan struct{}
	err  error
}

// ErrEnclosure is wrapped by the error of [New] where this system cannot keep users
// apart.
var ErrEnclosure = errors.New("this system cannot keep several users apart")

// New returns a pool without a worker, to be closed.
func New(o Options) (*Pool, error) {
	if err := sandbox.TryEnclosure(); err != nil {
		return nil, errors.Join(ErrEnclosure, err)
	}
	if _, err := findPlaces(o.Home, o.Hidden, o.HTTP.Principals); err != nil {
		return nil, err
	}
	p := newPool(o)
	p.launch = p.start
	return p, nil
}

func newPool(o Options) *Pool {
	p := &Pool{o: o, log: o.Logger, seats: map[string]*seat{}, clients: map[string]*client{}}
	for name := range o.HTTP.Principals {
		p.seats[name], p.clients[name] = &seat{}, newClient()
	}
	return p
}

// ServeHTTP implements [http.Handler].
func (p *Pool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	patient := newPatient(w, r)
	if !p.serve(patient, r) && p.o.Report != nil && r.Context().Err() == nil {
		p.o.Report(streamable.Report{Status: patient.status})
	}
}

// serve reports whether a worker has answered.
func (p *Pool) serve(patient *patient, r *http.Request) bool {
	who, ok := p.o.Guard.Admit(patient, r)
	if !ok {
		return false
	}
	user := cmp.Or(r.PathValue(UserValue), who.Name)
	if user != who.Name {
		if !p.decides(&who, user) {
			http.Error(patient, "you do not decide for this user", http.StatusForbidden)
			return false
		}
	}
	c, ok := p.enter(who.Name)
	if !ok {
		patient.Header().Set("Retry-After", "1")
		http.Error(patient, "too many requests are open", http.StatusTooManyRequests)
		return false
	}
	defer p.leave(c)
	release, ok := c.receive(patient, r)
	if !ok {
		return false
	}
	defer release()
	patient.extend() // the body may have taken all of the time
	worker, conn, err := p.connect(r.Context(), user)
	if err != nil {
		if r.Context().Err() == nil {
			p.log.Error("no worker", "principal", user, "error", err)
		}
		patient.Header().Set("Retry-After", "5")
		http.Error(patient, "the server cannot work for you now; its log says why. Nothing was started", http.StatusServiceUnavailable)
		return false
	}
	defer p.rise(user)
	defer conn.Close()
	worker.proxy.ServeHTTP(patient, admitted(r, who, conn))
	return !patient.failed
}

// enter counts a request of a user, unless it has too many.
func (p *Pool) enter(name string) (*client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil || c.open >= maxOpen {
		return nil, false
	}
	c.open++
	return c, true
}

func (p *Pool) leave(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.open--
}

// UserValue is the wildcard of a path that names the user whose worker a request is for:
// an approver goes to the workers of others.
const UserValue = "user"

// deciding is all that an approver may do at the worker of another user.
var deciding = []streamable.Scope{streamable.ScopeApprove, streamable.ScopeRead}

// decides reports whether a principal decides for a user, and leaves it the scopes for
// that.
func (p *Pool) decides(who *streamable.Principal, user string) bool {
	if p.o.HTTP.Principals[user].Approver != who.Name {
		return false
	}
	scopes := slices.Clone(deciding)
	if who.Scopes != nil {
		scopes = slices.DeleteFunc(scopes, func(s streamable.Scope) bool { return !slices.Contains(who.Scopes, s) })
	}
	who.Scopes = scopes
	return slices.Contains(scopes, streamable.ScopeApprove)
}

// connect returns a connection for one request of a user, who sits until [Pool.rise].
// While a worker ends it waits for that, and takes the next one: nothing was sent to the
// one before.
func (p *Pool) connect(ctx context.Context, name string) (*worker, net.Conn, error) {
	for {
		w, err := p.sit(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		conn, err := w.dial(ctx)
		if err == nil {
			return w, conn, nil
		}
		p.rise(name)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, nil, err
		}
		select {
		case <-w.gone:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(endLimit):
			return nil, nil, err
		}
	}
}

var (
	errUnknown = errors.New("no such user")
	errClosed  = errors.New("the server ends")
)

// sit returns the worker of a user for a request, which keeps the worker until
// [Pool.rise]. It starts a worker where there is none.
func (p *Pool) sit(ctx context.Context, name string) (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[name]
	if s == nil {
		return nil, errUnknown
	}
	for {
		var changed <-chan struct{}
		var a *attempt
		switch {
		case s.rest != nil:
			changed = s.rest
		case s.worker != nil && s.worker.alive():
			s.open++
			if s.timer != nil {
				s.timer.Stop()
			}
			return s.worker, nil
		case p.draining || p.closed:
			return nil, errClosed
		default:
			a = s.start
			if a == nil {
				a = &attempt{done: make(chan struct{})}
				s.start = a
				p.running.Go(func() { p.try(name, s, a) })
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

// rise ends what sit has begun.
func (p *Pool) rise(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seats[name]
	s.open--
	p.await(name, s)
}

// await begins the time after which a worker without a request ends. p.mu is held.
func (p *Pool) await(name string, s *seat) {
	if s.open > 0 || p.o.HTTP.WorkerIdle <= 0 {
		return
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(p.o.HTTP.WorkerIdle, func() { p.relieve(name, s) })
		return
	}
	s.timer.Reset(p.o.HTTP.WorkerIdle)
}

// relieve ends a worker that is idle. Requests wait meanwhile: they go to this worker if
// it is busy, else to the next one.
func (p *Pool) relieve(name string, s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.open > 0 || s.rest != nil || s.worker == nil || !s.worker.alive() || p.draining || p.closed {
		return
	}
	w := s.worker
	s.rest = make(chan struct{})
	p.running.Go(func() {
		idle := w.idle()
		if idle {
			p.log.Info("worker is idle", "principal", name)
			w.end(endLimit)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		close(s.rest)
		s.rest = nil
		if !idle {
			p.await(name, s)
		}
	})
}

// try starts a worker for the requests that wait for it.
func (p *Pool) try(name string, s *seat, a *attempt) {
	defer close(a.done)
	w, err := p.launch(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.start, a.err = nil, err
	if err == nil {
		s.worker = w
		p.log.Info("worker started", "principal", name, "process", w.process)
		p.await(name, s)
	}
}

// Draining reports whether [Pool.Drain] was called.
func (p *Pool) Draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

// Drain starts no more workers, and returns when nothing is under way in any, or when
// ctx ends. Answers to questions, and what polls and answers tasks, still come in.
func (p *Pool) Drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	for _, w := range p.all() {
		w.drain()
	}
	for _, w := range p.all() {
		select {
		case <-w.drained:
		case <-w.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// all returns the workers, after those that are about to start have.
func (p *Pool) all() (all []*worker) {
	for _, s := range p.seats {
		p.mu.Lock()
		a := s.start
		p.mu.Unlock()
		if a != nil {
			<-a.done
		}
		p.mu.Lock()
		if s.worker != nil {
			all = append(all, s.worker)
		}
		p.mu.Unlock()
	}
	return all
}

// Close ends all workers, each with what it has under way.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, w := range p.all() {
		ending.Go(func() { w.end(endLimit) })
	}
	ending.Wait()
	p.running.Wait()
	return nil
}
