package workers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
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
	sockets string         // a folder for those of the workers
	running sync.WaitGroup // starts, and what waits for processes

	mu       sync.Mutex
	seats    map[string]*seat
	draining bool
	closed   bool
}

// seat is where a user's worker is, or is to be.
type seat struct {
	worker *worker  // nil before the first
	start  *attempt // nil while none is under way
}

// attempt is one start of a worker.
type attempt struct {
	done   chan struct{}
	worker *worker
	err    error
}

// ErrEnclosure is wrapped by the error of [New] where this system cannot keep users
// apart.
var ErrEnclosure = errors.New("this system cannot keep several users apart")

// New returns a pool without a worker, to be closed.
func New(o Options) (*Pool, error) {
	if err := sandbox.TryEnclosure(); err != nil {
		return nil, errors.Join(ErrEnclosure, err)
	}
	dir, err := os.MkdirTemp("", "codex-mcp-")
	if err != nil {
		return nil, err
	}
	p := &Pool{o: o, log: o.Logger, sockets: dir, seats: map[string]*seat{}}
	if _, err := findPlaces(o.Home, p.secret(), o.HTTP.Principals); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for name := range o.HTTP.Principals {
		p.seats[name] = &seat{}
	}
	return p, nil
}

func (p *Pool) secret() []string { return append([]string{p.sockets}, p.o.Hidden...) }

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
	worker, conn, err := p.connect(r.Context(), user)
	if err != nil {
		if r.Context().Err() == nil {
			p.log.Error("no worker", "principal", user, "error", err)
		}
		patient.Header().Set("Retry-After", "5")
		http.Error(patient, "the server cannot work for you now; its log says why. Nothing was started", http.StatusServiceUnavailable)
		return false
	}
	defer conn.Close()
	worker.proxy.ServeHTTP(patient, admitted(r, who, conn))
	return !patient.failed
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

// connect returns a connection for one request of a user. While a worker ends it waits
// for that, and takes the next one: nothing was sent to the one before.
func (p *Pool) connect(ctx context.Context, name string) (*worker, net.Conn, error) {
	var dialer net.Dialer
	for {
		w, err := p.worker(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		conn, err := dialer.DialContext(ctx, "unix", w.socket)
		if err == nil {
			return w, conn, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
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

// worker returns the worker of a user, and starts it where there is none.
func (p *Pool) worker(ctx context.Context, name string) (*worker, error) {
	p.mu.Lock()
	s := p.seats[name]
	switch {
	case s == nil:
		p.mu.Unlock()
		return nil, errUnknown
	case s.worker != nil && s.worker.alive():
		defer p.mu.Unlock()
		return s.worker, nil
	case p.draining || p.closed:
		p.mu.Unlock()
		return nil, errClosed
	}
	a := s.start
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		s.start = a
		p.running.Go(func() { p.try(name, s, a) })
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.worker, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try starts a worker for the requests that wait for it.
func (p *Pool) try(name string, s *seat, a *attempt) {
	defer close(a.done)
	a.worker, a.err = p.start(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.start = nil
	if a.err == nil {
		s.worker = a.worker
		p.log.Info("worker started", "principal", name, "process", a.worker.process.Pid)
	}
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
	return os.RemoveAll(p.sockets)
}
