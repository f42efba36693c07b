package workers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// fakeWorker is a worker without a process. It takes a second to end.
type fakeWorker struct {
	*process
	mu     sync.Mutex
	does   worker.Activity
	silent bool          // it does not answer
	checks int           // questions that it has received
	hold   chan struct{} // its answers wait for it; nil if they do not
}

func newFakeWorker(p *Pool) *fakeWorker {
	near, far := net.Pipe()
	f := &fakeWorker{process: p.newWorker(nil), does: worker.Idle}
	m := new(jsonrpc.Mux)
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	jsonrpc.Handle(m, "load", func(ctx context.Context, _ struct{}) (worker.Load, error) {
		f.mu.Lock()
		f.checks++
		hold := f.hold
		if f.silent {
			hold = make(chan struct{})
		}
		f.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return worker.Load{Activity: f.does, Requests: 1}, nil
	})
	jsonrpc.HandleNotify(m, "stop", func(context.Context, struct{}) error { end(); return nil })
	peer := jsonrpc.NewPeer(jsonrpc.Lines(far, far, far), m, nil)
	f.conn = worker.NewConn(near, worker.Served{Nonsense: func(error) { end() }})
	f.kill = func() error { end(); return nil }
	go func() {
		running, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- peer.Run(running) }()
		<-stop
		<-time.After(time.Second) // on the test's clock
		cancel()
		<-ended
		f.conn.Close()
		close(f.exited)
	}()
	return f
}

// set says what the worker does. silent is one that does not answer.
func (f *fakeWorker) set(does worker.Activity, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.does, f.silent = does, silent
}

func (f *fakeWorker) idleChecks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks
}

// idlePool returns a pool for ann. It appends each worker that it starts to made.
func idlePool(idle time.Duration, made *[]*fakeWorker) *Pool {
	p := newPool(Options{HTTP: settings.HTTP{WorkerIdle: idle, Principals: map[string]settings.Principal{"ann": {}}}, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler)})
	p.start = func(context.Context, string) (*process, error) {
		f := newFakeWorker(p)
		*made = append(*made, f)
		return f.process, nil
	}
	return p
}

// connect begins a request of ann. It ends when leave is called.
func connect(t *testing.T, p *Pool) (w *process, leave func()) {
	t.Helper()
	w = must.Get(p.acquire(t.Context(), "ann", false))(t)
	return w, func() { p.release("ann", false) }
}

// TestIdle checks that a worker ends when it has been idle for an hour, and not before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(time.Hour, &made)
		alive := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := made[len(made)-1].alive(); got != want {
				t.Errorf("%s: alive is %v", when, got)
			}
		}
		_, leave := connect(t, p)
		<-time.After(3 * time.Hour)
		alive("with an open request", true)
		leave()
		<-time.After(time.Hour - time.Second)
		alive("before the hour is over", true)
		_, leave = connect(t, p)
		leave()
		<-time.After(time.Hour - time.Second)
		alive("before another hour is over", true)
		made[0].set(worker.Busy, false)
		<-time.After(2 * time.Hour)
		alive("with work in the background", true)
		if n := made[0].idleChecks(); n != 2 {
			t.Errorf("%d idle checks, want one an hour", n)
		}
		made[0].set(worker.Idle, true)
		<-time.After(2*time.Hour + time.Minute)
		alive("without an answer", true)
		made[0].set(worker.Idle, false)
		<-time.After(2 * time.Hour)
		alive("with nothing to do", false)
		_, leave = connect(t, p)
		leave()
		if alive("started again", true); len(made) != 2 {
			t.Errorf("%d workers were started", len(made))
		}
		must.Check(t, p.Close())
		alive("with the pool closed", false)
		<-time.After(2 * time.Hour) // no timer starts a worker
	})
}

// TestIdleUnused checks a worker whose only client cancels the request before it has started: it ends after the idle time,
// and if that is 0 it never does.
func TestIdleUnused(t *testing.T) {
	for idle, alive := range map[time.Duration]bool{0: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			var made []*fakeWorker
			p := idlePool(idle, &made)
			ctx, cancel := context.WithCancel(t.Context())
			start := p.start
			p.start = func(ctx context.Context, name string) (*process, error) {
				cancel()
				synctest.Wait()
				return start(ctx, name)
			}
			if _, err := p.acquire(ctx, "ann", false); !errors.Is(err, context.Canceled) {
				t.Errorf("the request: %v", err)
			}
			<-time.After(24 * time.Hour)
			synctest.Wait()
			if made[0].alive() != alive {
				t.Errorf("an idle time of %v: alive is %v", idle, made[0].alive())
			}
			must.Check(t, p.Close())
			if _, err := p.acquire(t.Context(), "ann", false); !alive && !errors.Is(err, errClosed) {
				t.Errorf("a request after the pool is closed: %v", err)
			}
		})
	}
}

// TestIdleHandOver checks requests that arrive during an idle check or while a worker ends.
// A busy worker receives them, and otherwise the next worker.
func TestIdleHandOver(t *testing.T) {
	for does, want := range map[worker.Activity]int{worker.Idle: 1, worker.Busy: 0} {
		t.Run(string(does), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made []*fakeWorker
				p := idlePool(time.Hour, &made)
				_, leave := connect(t, p)
				leave()
				made[0].set(does, false)
				made[0].mu.Lock()
				made[0].hold = make(chan struct{})
				made[0].mu.Unlock()
				<-time.After(time.Hour + time.Second)
				got := make(chan *process, 3)
				var requests sync.WaitGroup
				request := func() {
					requests.Go(func() {
						w, leave := connect(t, p)
						got <- w
						leave()
					})
				}
				request()
				request()
				<-time.After(time.Second)
				if len(got) != 0 {
					t.Error("a request did not wait for the idle check")
				}
				close(made[0].hold)
				synctest.Wait()
				request() // while the worker ends
				requests.Wait()
				if len(made) != want+1 {
					t.Fatalf("%d workers were started", len(made))
				}
				for range 3 {
					if w := <-got; w != made[want].process {
						t.Error("a request went to the wrong worker")
					}
				}
				must.Check(t, p.Close())
			})
		})
	}
}

// TestActivity checks what a worker counts as doing: what is not known is busy.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(0, &made)
		if got := p.Activity(t.Context(), "ann"); got != worker.Idle {
			t.Errorf("without a worker: %v", got)
		}
		p.EndIdle("ann")
		p.EndIdle("nobody")
		_, leave := connect(t, p)
		leave()
		for _, tt := range []struct {
			does   worker.Activity
			silent bool
			want   worker.Activity
			loads  int
		}{
			{worker.Idle, false, worker.Idle, 1}, {worker.Waiting, false, worker.Waiting, 1}, {worker.Connected, false, worker.Connected, 1}, {worker.Busy, false, worker.Busy, 1},
			{"sleeps", false, worker.Busy, 1}, {worker.Idle, true, worker.Busy, 0},
		} {
			made[0].set(tt.does, tt.silent)
			if got := p.Activity(t.Context(), "ann"); got != tt.want {
				t.Errorf("%q, silent %v: %v, want %v", tt.does, tt.silent, got, tt.want)
			}
			if got := p.Loads(t.Context()); len(got) != tt.loads {
				t.Errorf("%q, silent %v: %v", tt.does, tt.silent, got)
			}
		}
		made[0].set(worker.Waiting, false)
		_, one := connect(t, p)
		_, two := connect(t, p) // the worker says that it has one
		if got := p.Activity(t.Context(), "ann"); got != worker.Busy {
			t.Errorf("with a request on its way: %v", got)
		}
		one()
		if got := p.Activity(t.Context(), "ann"); got != worker.Waiting {
			t.Errorf("with the request that it has: %v", got)
		}
		two()
		must.Get(p.acquire(t.Context(), "ann", true))(t)
		if got := p.Activity(t.Context(), "ann"); got != worker.Busy { // the worker may not know yet that it begins a turn
			t.Errorf("with a request that makes it busy: %v", got)
		}
		p.release("ann", true)
		if got := p.Activity(t.Context(), "ann"); got != worker.Waiting {
			t.Errorf("after that request: %v", got)
		}
		made[0].set(worker.Idle, false)
		p.EndIdle("ann")
		<-made[0].exited
		must.Check(t, p.Close())
	})
}

// TestKillTellsNothing checks that a worker that is killed does not learn that it ends: it would record that its turns
// have ended, and the next one would not continue them.
func TestKillTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(0, &made)
		w, leave := connect(t, p)
		leave()
		kill := make(chan struct{})
		w.kill = func() error { close(kill); return nil }
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			p.Kill("ann")
		}()
		<-kill
		<-time.After(time.Minute) // the machine is busy
		if !w.alive() {
			t.Error("the worker has learned of its end")
		}
		w.conn.Stop()
		<-killed
		if w.alive() {
			t.Error("it is not gone")
		}
		must.Check(t, p.Close())
	})
}
