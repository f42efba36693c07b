package thread

import (
	"context"
	"errors"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Thread is an open thread. It is safe for concurrent use.
type Thread struct {
	conversation engine.Conversation
	host         *host
	queue        queue

	mu     sync.Mutex
	turn   *turn // nil between turns
	closed bool
}

// turn is the running turn.
type turn struct {
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

var (
	// ErrInterrupted is the cause of an interrupt that the client asked for.
	ErrInterrupted = errors.New("interrupted by the client")
	// errClosed is why a turn of a closed thread does not begin.
	errClosed = errors.New("the conversation was closed")
	// ErrStopped is the cause of an interrupt that came from the desk.
	ErrStopped = errors.New("stopped by the user")
)

// ID is the thread's id.
func (t *Thread) ID() string { return t.conversation.ID() }

// Info is what the engine said of the thread when it began.
func (t *Thread) Info() protocol.SessionConfigured { return t.host.info() }

// Queue takes a ticket for the next turn, without waiting.
func (t *Thread) Queue() *Ticket { return t.queue.join() }

// Turn waits until the ticket is the first, then runs one turn to its end. It
// returns nil, an [*engine.TurnError] or an [*engine.AbortError]; a turn that
// never began was aborted.
func (t *Thread) Turn(ctx context.Context, ticket *Ticket, a Attendance, in protocol.TurnInput) error {
	defer ticket.leave()
	if err := ticket.wait(ctx); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := &turn{cancel: cancel, ended: make(chan struct{})}
	defer close(now.ended)
	if !t.begin(ticket, now) {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errClosed}
	}

	leave := t.host.begin(ctx, a)
	defer leave()
	t.host.show(t.ID(), protocol.UserMessage{Message: protocol.TextOf(in.Items), Kind: protocol.UserPlain})
	err := t.conversation.Turn(ctx, in)
	t.host.end(ctx.Err() != nil)
	t.mu.Lock()
	t.turn = nil
	t.mu.Unlock()
	return err
}

// begin makes now, the turn of the ticket, the running one. It returns false when
// the thread is closed.
func (t *Thread) begin(ticket *Ticket, now *turn) bool {
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

// Stop interrupts the running turn, or the queued one that is about to begin,
// without waiting. The channel is closed when that turn has ended; it is nil when
// there is none.
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

// Interrupt ends the running turn and waits for its end. It returns false when
// none is running.
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

// Warn logs the words and sends them as an event of a submission.
func (t *Thread) Warn(submission, words string) {
	t.host.log.Warn(words, "thread", t.ID())
	t.host.deliver(submission, protocol.BackgroundEvent{Message: words})
}

// Listen adds a listener, which gets the events that were kept for the first
// one, and then every event.
func (t *Thread) Listen(id string, l Listener) {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	t.host.listeners.add(id, l)
}

// Unlisten removes a listener and reports whether it was there.
func (t *Thread) Unlisten(id string) bool {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.listeners.remove(id)
}

// close closes the engine's conversation after the turns that are queued. A
// later turn does not begin.
func (t *Thread) close(ctx context.Context) error {
	t.mu.Lock()
	ticket := t.queue.join()
	ticket.closes = true
	t.mu.Unlock()
	defer ticket.leave()
	if err := ticket.wait(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.conversation.Close()
}

// end closes a thread that does not go on, and shows its end.
func (t *Thread) end(ctx context.Context) error {
	err := t.close(ctx)
	t.host.show(t.ID(), protocol.ShutdownComplete{})
	return err
}
