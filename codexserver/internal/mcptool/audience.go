package mcptool

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
)

// Audience is who attends the turns of a call, and who is asked their questions besides the desk.
type Audience struct {
	// Turn is for the turn that the call waits for, Background for others.
	Turn, Background thread.Attendance
	// Caller asks the client of the call, also about turns that other clients began. It is nil
	// if the client cannot be asked.
	Caller approve.Place
	// Session is the time in which the client is asked by requests of the server, whether or not
	// it waits for a call. It is nil for a client that gets its questions in results of calls, so
	// that only a call that waits can ask.
	Session context.Context
}

// waiter asks the client of a codex-wait, and counts what the client has not answered.
type waiter struct {
	caller approve.Place

	mu      sync.Mutex
	out     int // questions that are with the client
	changed chan struct{}
}

func (c *call) newWaiter() *waiter {
	return &waiter{caller: c.Audience.Caller, changed: make(chan struct{})}
}

// place returns the client as a place for the questions that concern it. Another turn of a thread
// may belong to another client.
func (w *waiter) place(concerns func(*approval.Request) bool) approve.Place {
	return approve.Instead(w.caller, func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if !concerns(r) {
			return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
		}
		w.change(1)
		defer w.change(-1)
		return w.caller.Ask(ctx, r)
	})
}

func (w *waiter) change(out int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out += out
	close(w.changed)
	w.changed = make(chan struct{})
}

// state returns how many questions are with the client, and a channel that is closed when that
// changes.
func (w *waiter) state() (out int, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out, w.changed
}

// hold waits while the client has a question. It returns false if there was none.
func (w *waiter) hold(ctx context.Context) (waited bool) {
	for ; ; waited = true {
		out, changed := w.state()
		if out == 0 {
			return waited
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true
		}
	}
}
