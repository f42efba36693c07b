package thread

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/trail"
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
	cancel  context.CancelCauseFunc
	started chan struct{} // closed when the engine has said so
	ended   chan struct{}
}

var (
	// ErrInterrupted is the cause of an interrupt that the client asked for.
	ErrInterrupted = errors.New("interrupted by the client")
	// errClosed is why a turn of a closed thread does not begin.
	errClosed = errors.New("the conversation was closed")
	// ErrBusy is why nothing is done in the place of a turn.
	ErrBusy = errors.New("a turn of this conversation runs: wait for its end, or stop it with codex-interrupt")
	// ErrStopped is the cause of an interrupt that came from the desk.
	ErrStopped = errors.New("stopped by the user")
)

// ID is the thread's id.
func (t *Thread) ID() string { return t.conversation.ID() }

// Info is what the engine said of the thread when it began, with its current folder.
func (t *Thread) Info() protocol.SessionConfigured { return t.host.info() }

// Usage is what the thread has used, as the engine counted last; nil before it
// has counted.
func (t *Thread) Usage() *protocol.TokenUsage {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	return t.host.used
}

// Trail is what the thread has done.
func (t *Thread) Trail() *trail.Trail { return t.host.trail }

// Queue takes a ticket for the next turn, without waiting.
func (t *Thread) Queue() *Ticket { return t.queue.join() }

// Turn waits until the ticket is the first, then runs one turn to its end. It
// returns nil, an [*engine.TurnError] or an [*engine.AbortError]; a turn that
// never began was aborted.
func (t *Thread) Turn(ctx context.Context, ticket *Ticket, a Attendance, in protocol.TurnInput) error {
	return t.run(ctx, ticket, a, t.observed(a, func(ctx context.Context) (err error) {
		t.host.trail.Begin(protocol.TextOf(in.Items))
		defer func() { t.host.trail.End(err) }()
		t.host.move(in.Context)
		if a.Begin != nil {
			a.Begin(ctx)
		}
		t.host.show(t.ID(), protocol.UserMessage{Message: protocol.TextOf(in.Items), Kind: protocol.UserPlain})
		return t.conversation.Turn(ctx, in)
	}))
}

// Reviews reports whether the engine can review in the thread whatever it runs under.
func (t *Thread) Reviews() bool {
	_, ok := t.conversation.(engine.Reviewer)
	return ok
}

// Review is Turn for a review of what task returns, which is called when the turn's place
// in the queue has come. Nothing that the turn asks for is approved, and no question is
// asked. An engine that does not review runs a turn with the prompt: the thread must have
// begun as one that is read-only.
func (t *Thread) Review(ctx context.Context, ticket *Ticket, a Attendance, task func(context.Context) (protocol.Review, error)) error {
	return t.run(ctx, ticket, a, t.observed(a, func(ctx context.Context) error {
		t.host.deny(denyInReview)
		defer t.host.deny("")
		if a.Begin != nil {
			a.Begin(ctx)
		}
		r, err := task(ctx)
		if err != nil {
			return err
		}
		words := strings.TrimSpace("Review " + string(r.Target) + " " + r.Revision + "\n" + r.Instructions)
		t.host.show(t.ID(), protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
		if reviewer, ok := t.conversation.(engine.Reviewer); ok {
			return reviewer.Review(ctx, r)
		}
		return t.conversation.Turn(ctx, protocol.TurnInput{Items: protocol.TextInput(r.Prompt)})
	}))
}

// denyInReview is the reason that the model gets.
const denyInReview = "this is a review, which changes nothing and asks for nothing"

// Act runs f in the place of a turn: none runs meanwhile, an interrupt ends its context,
// and its questions are put where a's are. The error is f's, [ErrBusy] when a turn runs
// or is queued, or an [*engine.AbortError] when f did not run for another reason.
func (t *Thread) Act(ctx context.Context, a Attendance, f func(context.Context, engine.Host) error) error {
	ticket := t.Queue()
	select {
	case <-ticket.first:
	default:
		ticket.leave()
		return ErrBusy
	}
	return t.run(ctx, ticket, a, func(ctx context.Context) error { return f(ctx, t.host) })
}

// run runs f as the thread's turn.
func (t *Thread) run(ctx context.Context, ticket *Ticket, a Attendance, f func(context.Context) error) error {
	defer ticket.leave()
	if err := ticket.wait(ctx); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := &turn{cancel: cancel, started: make(chan struct{}), ended: make(chan struct{})}
	defer close(now.ended)
	if !t.begin(ticket, now) {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errClosed}
	}

	leave := t.host.begin(ctx, a, now.started)
	defer leave()
	err := f(ctx)
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

// Attach adds a place where the questions of the thread stand, open ones too, until
// leave is called.
func (t *Thread) Attach(p approval.Place) (leave func()) { return t.host.board.Attach(p) }

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
	return t.release()
}

// release frees what the thread holds.
func (t *Thread) release() error {
	t.host.trail.Close()
	return t.conversation.Close()
}

// end closes a thread that does not continue, and shows its end.
func (t *Thread) end(ctx context.Context) error {
	err := t.close(ctx)
	t.host.show(t.ID(), protocol.ShutdownComplete{})
	return err
}
