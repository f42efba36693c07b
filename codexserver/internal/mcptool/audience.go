package mcptool

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
)

// Audience is who attends the turns of a call, and who is asked their questions besides the desk:
// the client, or the approver in its place.
type Audience struct {
	// Turn is for the turn that the call waits for, Background for others.
	Turn, Background thread.Attendance
	// Caller asks the client of the call, also about turns that other clients began. It is nil
	// if the client cannot be asked.
	Caller board.Place
	// Session is the time in which the client is asked by requests of the server, whether or not
	// it waits for a call. It is nil for a client that gets its questions in results of calls, so
	// that only a call that waits can ask.
	Session context.Context
	// Relay has the questions that the client's principal decides for others. Codex-wait asks
	// them. It is nil for other clients.
	Relay *board.Relay
}

// waiter asks the client of a codex-wait, and counts what the client has not answered.
type waiter struct {
	caller board.Place

	mu      sync.Mutex
	out     int   // questions that are with the client
	decided []row // by the client
	changed chan struct{}
}

func (c *call) newWaiter() *waiter {
	return &waiter{caller: c.Audience.Caller, changed: make(chan struct{})}
}

// place returns the client as a place for the questions that concern it. Another turn of a thread
// may belong to another client.
func (w *waiter) place(concerns func(*approval.Request) bool) board.Place {
	return board.Instead(w.caller, func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if !concerns(r) {
			return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
		}
		w.change(1, nil)
		out, err := w.caller.Ask(ctx, r)
		if err != nil || ctx.Err() != nil || out.ForCaller() != "" {
			w.change(-1, nil)
		} else {
			w.change(-1, decidedRow(r, out))
		}
		return out, err
	})
}

func (w *waiter) change(out int, decided *row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out += out
	if decided != nil {
		w.decided = append(w.decided, *decided)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// state returns what the client has decided, how many questions are with it, and a channel that is
// closed when that changes.
func (w *waiter) state() (decided []row, out int, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]row{}, w.decided...), w.out, w.changed
}

// hold waits while the client has a question. It returns false if there was none.
func (w *waiter) hold(ctx context.Context) (waited bool) {
	for ; ; waited = true {
		_, out, changed := w.state()
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
