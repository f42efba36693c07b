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
	if !t.set(now) {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errClosed}
	}

	leave := t.host.begin(a)
	defer leave()
	t.host.show(t.ID(), protocol.UserMessage{Message: protocol.TextOf(in.Items), Kind: protocol.UserPlain})
	err := t.conversation.Turn(ctx, in)
	t.host.end(ctx.Err() != nil)
	t.set(nil)
	return err
}

// set makes now the running turn. It returns false when the thread is closed.
func (t *Thread) set(now *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.turn = now
	}
	return !t.closed
}

// Busy reports whether a turn is running.
func (t *Thread) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn != nil
}

// stop interrupts the running turn without waiting for its end. It returns nil
// when none is running.
func (t *Thread) stop(cause error) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn != nil {
		t.turn.cancel(cause)
	}
	return t.turn
}

// Interrupt ends the running turn and waits for its end. It returns false when
// none is running.
func (t *Thread) Interrupt(ctx context.Context) (bool, error) {
	now := t.stop(ErrInterrupted)
	if now == nil {
		return false, nil
	}
	select {
	case <-now.ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// Warn logs the words and sends them as an event of a submission.
func (t *Thread) Warn(submission, words string) {
	t.host.log.Warn(words, "thread", t.ID())
	t.host.EmitAs(submission, protocol.BackgroundEvent{Message: words})
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
	ticket := t.queue.join()
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
