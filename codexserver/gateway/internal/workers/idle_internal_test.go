package workers

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// fakeWorker is a worker without a process. It takes a second to end.
type fakeWorker struct {
	*worker
	mu     sync.Mutex
	busy   bool
	parked bool
	silent bool // it does not answer idle checks
	checks int  // idle checks that it has received
}

func newFakeWorker() *fakeWorker {
	messages, control := io.Pipe()
	f := &fakeWorker{worker: newWorker(slog.New(slog.DiscardHandler), challenger{})}
	f.control, f.kill = control, control.Close
	f.connections.dial = func(context.Context) (net.Conn, error) {
		if !f.alive() {
			return nil, errors.New("the worker has ended")
		}
		conn, _ := net.Pipe()
		return conn, nil
	}
	go func() {
		defer close(f.exited)
		lines := bufio.NewScanner(messages)
		for lines.Scan() {
			f.mu.Lock()
			f.checks++
			if !f.silent {
				f.loads <- workerlink.Load{Busy: f.busy, Parked: f.parked}
			}
			f.mu.Unlock()
		}
		<-time.After(time.Second) // on the test's clock
	}()
	return f
}

func (f *fakeWorker) set(busy, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy, f.silent = busy, silent
}

func (f *fakeWorker) park(parked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parked = parked
}

func (f *fakeWorker) idleChecks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks
}

// idlePool returns a pool for ann. It appends each worker that it starts to made.
func idlePool(idle time.Duration, made *[]*fakeWorker) *Pool {
	p := newPool(Options{HTTP: settings.HTTP{WorkerIdle: idle, Principals: map[string]settings.Principal{"ann": {}}}, Logger: slog.New(slog.DiscardHandler)})
	p.start = func(context.Context, string) (*worker, error) {
		f := newFakeWorker()
		*made = append(*made, f)
		return f.worker, nil
	}
	return p
}

// connect begins a request of ann. It ends when leave is called.
func connect(t *testing.T, p *Pool) (w *worker, leave func()) {
	t.Helper()
	w, conn, err := p.connect(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	return w, func() {
		conn.Close()
		p.release("ann")
	}
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
		made[0].set(true, false)
		<-time.After(2 * time.Hour)
		alive("with work in the background", true)
		if n := made[0].idleChecks(); n != 2 {
			t.Errorf("%d idle checks, want one an hour", n)
		}
		made[0].set(false, true)
		<-time.After(2*time.Hour + time.Minute)
		alive("without an answer", true)
		made[0].set(false, false)
		<-time.After(2 * time.Hour)
		alive("with nothing to do", false)
		_, leave = connect(t, p)
		leave()
		if alive("started again", true); len(made) != 2 {
			t.Errorf("%d workers were started", len(made))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		alive("with the pool closed", false)
		<-time.After(2 * time.Hour) // no timer starts a worker
	})
}

// TestIdleNever checks that a worker never ends if the idle time is 0. The client cancels
// its only request before the worker has started; with an idle time the worker still ends.
func TestIdleNever(t *testing.T) {
	for name, tt := range map[string]struct {
		idle  time.Duration
		alive bool
	}{"never": {0, true}, "in an hour": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made []*fakeWorker
				p := idlePool(tt.idle, &made)
				ctx, cancel := context.WithCancel(t.Context())
				start := p.start
				p.start = func(ctx context.Context, name string) (*worker, error) {
					cancel()
					synctest.Wait()
					return start(ctx, name)
				}
				if _, _, err := p.connect(ctx, "ann"); !errors.Is(err, context.Canceled) {
					t.Errorf("the request: %v", err)
				}
				<-time.After(24 * time.Hour)
				synctest.Wait()
				if made[0].alive() != tt.alive {
					t.Errorf("alive is %v", made[0].alive())
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestIdleHandOver checks requests that arrive during an idle check or while a worker ends.
// A busy worker receives them, and otherwise the next worker.
func TestIdleHandOver(t *testing.T) {
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made []*fakeWorker
				p := idlePool(time.Hour, &made)
				_, leave := connect(t, p)
				leave()
				made[0].set(busy, true)
				<-time.After(time.Hour)
				synctest.Wait() // the idle check is under way
				got := make(chan *worker, 3)
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
				synctest.Wait()
				if len(got) != 0 {
					t.Error("a request did not wait for the idle check")
				}
				made[0].loads <- workerlink.Load{Busy: busy}
				made[0].set(busy, false)
				synctest.Wait()
				request() // while the worker ends
				requests.Wait()
				want := 1
				if busy {
					want = 0
				}
				if len(made) != want+1 {
					t.Fatalf("%d workers were started", len(made))
				}
				for range 3 {
					if w := <-got; w != made[want].worker {
						t.Error("a request went to the wrong worker")
					}
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestIdleEnd drains and closes a pool while a worker ends.
func TestIdleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(time.Hour, &made)
		_, leave := connect(t, p)
		leave()
		<-time.After(time.Hour)
		synctest.Wait()
		failed := make(chan error, 1)
		go func() {
			_, _, err := p.connect(t.Context(), "ann")
			failed <- err
		}()
		synctest.Wait()
		if err := p.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, errClosed) {
			t.Errorf("a request while the pool drains: %v", err)
		}
		if err := p.Close(); err != nil || len(made) != 1 {
			t.Errorf("%v, and %d workers were started", err, len(made))
		}
	})
}

// TestQuiet checks which workers another node may have instead, and that nothing else ends.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fakeWorker
		p := idlePool(time.Hour, &made)
		idle := func(when string, want bool) {
			t.Helper()
			if got := p.Idle(t.Context(), time.Minute); (len(got) == 1) != want {
				t.Errorf("%s: %v", when, got)
			}
		}
		idle("without a worker", false)
		if p.EndIdle("ann") != nil || p.EndIdle("nobody") != nil {
			t.Error("without a worker one ends")
		}
		_, leave := connect(t, p)
		<-time.After(time.Hour)
		idle("with an open request", false)
		if p.EndIdle("ann") != nil {
			t.Error("the worker of an open request is asked")
		}
		leave()
		<-time.After(time.Minute - time.Second)
		idle("a little after a request", false)
		<-time.After(time.Second)
		idle("a minute after a request", true)
		made[0].set(true, false)
		idle("busy", false)
		<-p.EndIdle("ann")
		if !made[0].alive() {
			t.Error("a busy worker has ended")
		}
		made[0].set(false, false)
		made[0].work.observe(&workerlink.Observation{Kind: workerlink.KindTurnBegin, Turn: 1})
		idle("with a turn", false)
		made[0].work.observe(&workerlink.Observation{Kind: workerlink.KindTurnEnd, Turn: 1})
		made[0].set(false, true)
		idle("it does not answer", false)
		made[0].set(false, false)
		idle("after all that", true)
		<-p.EndIdle("ann")
		if made[0].alive() {
			t.Error("an idle worker has not ended when EndIdle is done")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
