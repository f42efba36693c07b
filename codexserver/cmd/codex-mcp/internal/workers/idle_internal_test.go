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

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// hand is a worker without a process, whose end takes a second.
type hand struct {
	*worker
	mu    sync.Mutex
	busy  bool
	mute  bool // it does not answer
	asked int  // how often it was asked whether it is idle
}

func newHand() *hand {
	orders, order := io.Pipe()
	h := &hand{worker: newWorker(slog.New(slog.DiscardHandler), challenger{})}
	h.order, h.kill = order, func() error { return nil }
	h.dial = func(context.Context) (net.Conn, error) {
		if !h.alive() {
			return nil, errors.New("a request for a worker that has ended")
		}
		conn, _ := net.Pipe()
		return conn, nil
	}
	go func() {
		defer close(h.gone)
		lines := bufio.NewScanner(orders)
		for lines.Scan() {
			h.mu.Lock()
			h.asked++
			if !h.mute {
				h.rests <- !h.busy
			}
			h.mu.Unlock()
		}
		<-time.After(time.Second) // of the bubble
	}()
	return h
}

func (h *hand) set(busy, mute bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.mute = busy, mute
}

func (h *hand) questions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// idlePool returns a pool of ann's workers, which it adds to made.
func idlePool(idle time.Duration, made *[]*hand) *Pool {
	p := newPool(Options{HTTP: config.HTTP{WorkerIdle: idle, Principals: map[string]config.Principal{"ann": {}}}, Logger: slog.New(slog.DiscardHandler)})
	p.launch = func(string) (*worker, error) {
		h := newHand()
		*made = append(*made, h)
		return h.worker, nil
	}
	return p
}

// connected is a request of ann that has a worker.
func connected(t *testing.T, p *Pool) (w *worker, leave func()) {
	t.Helper()
	w, conn, err := p.connect(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	return w, func() {
		conn.Close()
		p.rise("ann")
	}
}

// TestIdle: a worker ends after an hour in which it has nothing to do, and not before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*hand
		p := idlePool(time.Hour, &made)
		alive := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := made[len(made)-1].alive(); got != want {
				t.Errorf("%s: it is alive: %v", when, got)
			}
		}
		_, leave := connected(t, p)
		<-time.After(3 * time.Hour)
		alive("with an open request", true)
		leave()
		<-time.After(time.Hour - time.Second)
		alive("before the hour is over", true)
		_, leave = connected(t, p)
		leave()
		<-time.After(time.Hour - time.Second)
		alive("before another hour is over", true)
		made[0].set(true, false)
		<-time.After(2 * time.Hour)
		alive("with work in the background", true)
		if n := made[0].questions(); n != 2 {
			t.Errorf("it was asked %d times, want once an hour", n)
		}
		made[0].set(false, true)
		<-time.After(2*time.Hour + time.Minute)
		alive("without an answer", true)
		made[0].set(false, false)
		<-time.After(2 * time.Hour)
		alive("with nothing to do", false)
		_, leave = connected(t, p)
		leave()
		if alive("started again", true); len(made) != 2 {
			t.Errorf("%d workers were started", len(made))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		alive("with the pool closed", false)
		<-time.After(2 * time.Hour) // no timer starts anything
	})
}

// TestIdleNever: with 0 a worker lasts, also one whose request has left before it began.
func TestIdleNever(t *testing.T) {
	for name, tt := range map[string]struct {
		idle  time.Duration
		alive bool
	}{"never": {0, true}, "in an hour": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made []*hand
				p := idlePool(tt.idle, &made)
				ctx, cancel := context.WithCancel(t.Context())
				start := p.launch
				p.launch = func(name string) (*worker, error) {
					cancel()
					synctest.Wait()
					return start(name)
				}
				if _, _, err := p.connect(ctx, "ann"); !errors.Is(err, context.Canceled) {
					t.Errorf("the request: %v", err)
				}
				<-time.After(24 * time.Hour)
				synctest.Wait()
				if made[0].alive() != tt.alive {
					t.Errorf("it is alive: %v", made[0].alive())
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestIdleHandOver: requests that come while a worker ends wait for the next one, and
// those that come while it is asked go to it if it stays.
func TestIdleHandOver(t *testing.T) {
	for name, busy := range map[string]bool{"it ends": false, "it stays": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made []*hand
				p := idlePool(time.Hour, &made)
				_, leave := connected(t, p)
				leave()
				made[0].set(busy, true)
				<-time.After(time.Hour)
				synctest.Wait() // it is asked, and has not answered
				got := make(chan *worker, 3)
				var requests sync.WaitGroup
				request := func() {
					requests.Go(func() {
						w, leave := connected(t, p)
						got <- w
						leave()
					})
				}
				request()
				request()
				synctest.Wait()
				if len(got) != 0 {
					t.Error("a request did not wait for the answer")
				}
				made[0].rests <- !busy
				made[0].set(busy, false)
				synctest.Wait()
				request() // while it ends
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
						t.Error("a request has the wrong worker")
					}
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestIdleEnd closes and drains a pool while a worker ends.
func TestIdleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*hand
		p := idlePool(time.Hour, &made)
		_, leave := connected(t, p)
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
			t.Errorf("a request while it drains: %v", err)
		}
		if err := p.Close(); err != nil || len(made) != 1 {
			t.Errorf("%v, and %d workers were started", err, len(made))
		}
	})
}
