package thread

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Thread is an open thread. It is safe for concurrent use.
type Thread struct {
	conversation engine.Conversation
	host         *host

	mu     sync.Mutex
	queue  queue
	turn   *running // nil between turns
	closed bool
	stays  bool        // see Stay
	idle   *time.Timer // closes the thread; each use sets it again

	folder string // the real path of the working folder if its commands may write there, else ""
	// What the thread may not have without an approval, and what records one; nil if there is nothing to
	// approve. Only its turns, which run one after another, use them.
	asks    protocol.AccessRequest
	granted func()
}

// running is the running turn.
type running struct {
	cancel  context.CancelCauseFunc
	started chan struct{} // closed when the engine has reported the start
	ended   chan struct{}
}

var (
	// ErrInterrupted is the cause of an interrupt that the client requested.
	ErrInterrupted = errors.New("interrupted by the client")
	// errClosed is the error of a turn of a closed thread.
	errClosed = errors.New("the conversation was closed")
	// ErrStopped is the cause of an interrupt that came from the desk.
	ErrStopped = errors.New(approve.Stopped)
)

// ID returns the thread's id.
func (t *Thread) ID() string { return t.conversation.ID() }

// Info returns the engine's description of the thread when it began, with its current folder.
func (t *Thread) Info() protocol.SessionConfigured { return t.host.info() }

// Usage returns the tokens that the thread has used by the engine's last count. It returns
// nil before the first count.
func (t *Thread) Usage() *protocol.TokenUsage {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.used
}

// Log returns what the thread has done.
func (t *Thread) Log() *transcript.Log { return t.host.kept }

// Queue takes a ticket for the next turn, without waiting.
func (t *Thread) Queue() *Ticket { return t.join(false) }

// Turn waits until the ticket is the first, then runs one turn until it ends. It returns
// nil, an [*engine.TurnError] or an [*engine.AbortError]. A turn that never began counts
// as aborted. In may continue a turn of a process that has ended, see [protocol.TurnInput.Continue].
func (t *Thread) Turn(ctx context.Context, ticket *Ticket, a Attend, in protocol.TurnInput) error {
	return t.attended(ctx, ticket, a, func(ctx context.Context, begin func()) (err error) {
		words := protocol.TextOf(in.Items)
		if in.Continue != nil {
			words = "[the server ended during this turn, which continues here]"
		}
		t.host.kept.Begin(words)
		defer func() { t.host.kept.End(err) }()
		begin()
		if in.Continue == nil {
			t.host.show(protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
		}
		if err := t.admit(ctx); err != nil {
			return err
		}
		return t.conversation.Turn(ctx, in)
	})
}

// Reviews reports whether the engine can review in the thread under any policy.
func (t *Thread) Reviews() bool {
	return t.host.traits.Reviews
}

// Review is Turn for a review. It calls task for the input when the ticket is the first.
// Every question of the turn is denied without asking. An engine that cannot review runs a
// turn with the prompt instead; the thread must then be read-only.
func (t *Thread) Review(ctx context.Context, ticket *Ticket, a Attend, task func(context.Context) (protocol.TurnInput, error)) error {
	return t.attended(ctx, ticket, a, func(ctx context.Context, begin func()) error {
		t.host.deny(denyInReview)
		defer t.host.deny("")
		begin()
		in, err := task(ctx)
		if err != nil {
			return err
		}
		r := in.Review
		words := strings.TrimSpace("Review " + string(r.Target) + " " + r.Revision + "\n" + r.Instructions)
		t.host.show(protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
		return t.conversation.Turn(ctx, in)
	})
}

// attended runs f as the thread's turn, which it ends. F calls begin when the engine may start. After the turn,
// when the next one may run, its diff is written into the transcript.
func (t *Thread) attended(ctx context.Context, ticket *Ticket, a Attend, f func(ctx context.Context, begin func()) error) error {
	if a.Turn == nil {
		a.Turn = turn.New(changes.Options{Changes: setting.Changes{Off: true}})
	}
	number := 0 // of the turn in its thread; 0 if it has not begun
	err := t.run(ctx, ticket, a, t.observed(a, func(ctx context.Context) error {
		return f(ctx, func() {
			number, _ = t.host.kept.Count()
			a.Turn.Begin(ctx, t.Info(), t.Usage())
		})
	}))
	a.Turn.End(err)
	if diff := a.Turn.Diff(); diff != "" {
		t.host.kept.Changed(number, diff)
	}
	return err
}

// denyInReview is the reason for the model.
const denyInReview = "this is a review, which changes nothing and asks for nothing"

// run runs f as the thread's turn.
func (t *Thread) run(ctx context.Context, ticket *Ticket, a Attend, f func(context.Context) error) error {
	defer ticket.Leave()
	if err := ticket.wait(ctx); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := &running{cancel: cancel, started: make(chan struct{}), ended: make(chan struct{})}
	defer close(now.ended)
	if !t.begin(ticket, now) {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errClosed}
	}

	a.Turn.Run(ctx, cancel)
	leave := t.host.begin(ctx, a, now.started)
	defer leave()
	defer func() { // also after a panic, which the caller reports
		t.host.end(ctx.Err() != nil)
		t.mu.Lock()
		t.turn = nil
		t.mu.Unlock()
	}()
	return f(ctx)
}

// begin makes now, the turn of the ticket, the running one. It returns false if the thread
// is closed.
func (t *Thread) begin(ticket *Ticket, now *running) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.turn, ticket.begun = now, true
	if ticket.cause != nil {
		now.cancel(ticket.cause)
	}
	return true
}

// Busy reports whether a turn is running.
func (t *Thread) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn != nil
}

// Stop interrupts the running turn, or the first queued one, without waiting. It returns a
// channel that is closed when that turn has ended, or nil if there is no turn.
func (t *Thread) Stop(cause error) (ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != nil {
		t.turn.cancel(cause)
		return t.turn.ended
	}
	next := t.queue.next()
	if next == nil || next.closes || t.closed {
		return nil
	}
	next.cause = cause
	return next.left
}

// Interrupt interrupts the running turn and waits for its end. It returns false if no turn
// is running.
func (t *Thread) Interrupt(ctx context.Context) (bool, error) {
	ended := t.Stop(ErrInterrupted)
	if ended == nil {
		return false, nil
	}
	select {
	case <-ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// Attach adds a place for the questions of the thread, including open ones, until leave is
// called.
func (t *Thread) Attach(p approve.Place) (leave func()) { return t.host.board.Attach(p) }

// Warn logs a message and sends it as an event of a submission.
func (t *Thread) Warn(submission, words string) {
	t.host.log.Warn(words, "thread", t.ID())
	t.host.deliver(submission, protocol.BackgroundEvent{Message: words}, false)
}

// Listen adds a listener. It receives the events that were kept for the first listener,
// and then every event.
func (t *Thread) Listen(id string, l Listener) {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	t.host.listeners.add(id, l)
}

// Unlisten removes a listener and reports whether it existed.
func (t *Thread) Unlisten(id string) bool {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.listeners.remove(id)
}

// close closes the engine's conversation after the queued turns. Later turns fail.
func (t *Thread) close(ctx context.Context) error {
	ticket := t.join(true)
	defer ticket.Leave()
	if err := ticket.wait(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	t.closed = true
	t.idle.Stop()
	t.mu.Unlock()
	return t.release()
}

// release closes the log and the engine's conversation.
func (t *Thread) release() error {
	t.host.kept.Close()
	return t.conversation.Close()
}

// end closes a thread and reports its end to the desk.
func (t *Thread) end(ctx context.Context) error {
	err := t.close(ctx)
	t.host.show(protocol.ShutdownComplete{})
	return err
}
