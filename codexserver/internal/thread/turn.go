package thread

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Turn is a turn of a thread, from its place in the queue to its end. [Turn.Run] or [Turn.Leave] must be called.
type Turn struct {
	thread  *Thread
	attend  Attend
	in      protocol.TurnInput
	review  func(context.Context) (protocol.TurnInput, error) // nil for other turns
	first   chan struct{}                                     // closed when the turn is the first of the queue
	started chan struct{}                                     // closed when the engine has reported the start
	left    chan struct{}                                     // closed when the turn has left the queue
	number  int                                               // in its thread; 0 before it has begun

	// Thread.mu guards these.
	closes bool                    // it is for closing the thread, not a turn
	begun  bool                    // it has the thread
	cancel context.CancelCauseFunc // of a turn that has begun
	cause  error                   // why it was interrupted before it began
}

// Begin queues a turn, without waiting, and returns it, not started. In may continue a turn of a process that has
// ended, see [protocol.TurnInput.Continue].
func (t *Thread) Begin(a Attend, in protocol.TurnInput) *Turn {
	return t.queued(&Turn{attend: a, in: in})
}

// Review is Begin for a review. It calls task for the input when the turn is the first.
// Every question of the turn is denied without asking. An engine that cannot review runs a
// turn with the prompt instead; the thread must then be read-only.
func (t *Thread) Review(a Attend, task func(context.Context) (protocol.TurnInput, error)) *Turn {
	a.Denied = denyInReview
	return t.queued(&Turn{attend: a, review: task})
}

func (t *Thread) queued(q *Turn) *Turn {
	if q.attend.Turn == nil {
		q.attend.Turn = turn.New(changes.Options{Changes: setting.Changes{Off: true}})
	}
	q.started = make(chan struct{})
	return t.join(q)
}

// Run waits until the turn is the first, then runs it until it ends. It returns nil, an [*engine.TurnError] or an
// [*engine.AbortError], with a [*turn.SpentError] if the budget has ended the turn. A turn that never began counts as
// aborted. After the turn, when the next one may run, its diff is written into the transcript.
func (q *Turn) Run(ctx context.Context) error {
	err := q.run(ctx)
	q.attend.Turn.End(err)
	if diff := q.attend.Turn.Found().Diff; diff != "" {
		q.thread.host.kept.Changed(q.number, diff)
	}
	return err
}

func (q *Turn) run(ctx context.Context) (err error) {
	t := q.thread
	defer q.Leave()
	if err := q.wait(ctx); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !q.begin(cancel) {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errClosed}
	}
	q.attend.Turn.Run(ctx, cancel)
	leave := t.host.begin(ctx, &q.attend, q.started)
	defer leave()
	defer func() { // also after a panic, which the caller reports
		t.host.end(ctx.Err() != nil)
		t.mu.Lock()
		t.turn = nil
		t.mu.Unlock()
	}()
	if observe := q.attend.Observer; observe != nil {
		if o := observe(t.ID(), *cmp.Or(t.Usage(), &protocol.TokenUsage{})); o != nil {
			t.host.observe(o)
			defer func() {
				t.host.observe(nil)
				o.End(err)
			}()
		}
	}
	if q.review != nil {
		err = q.reviews(ctx)
	} else {
		err = q.work(ctx)
	}
	if spent, ok := errors.AsType[*turn.SpentError](context.Cause(ctx)); ok && err != nil {
		err = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: spent}
	}
	return err
}

// begin makes q the running turn. It returns false if the thread is closed.
func (q *Turn) begin(cancel context.CancelCauseFunc) bool {
	t := q.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.turn, q.begun, q.cancel = q, true, cancel
	if q.cause != nil {
		cancel(q.cause)
	}
	return true
}

// start begins the turn, so that the engine may start.
func (q *Turn) start(ctx context.Context) {
	t := q.thread
	q.number, _ = t.host.kept.Count()
	q.attend.Turn.Begin(ctx, t.Info(), t.Usage())
}

// work runs a turn that is not a review.
func (q *Turn) work(ctx context.Context) (err error) {
	t := q.thread
	words := protocol.TextOf(q.in.Items)
	if q.in.Continue != nil {
		words = "[the server ended during this turn, which continues here]"
	}
	t.host.kept.Begin(words)
	defer func() { t.host.kept.End(err) }()
	q.start(ctx)
	if q.in.Continue == nil {
		t.host.show(protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
	}
	if err := t.admit(ctx); err != nil {
		return err
	}
	return t.conversation.Turn(ctx, q.in)
}

// denyInReview is the reason for the model.
const denyInReview = "this is a review, which changes nothing and asks for nothing"

// reviews runs a review.
func (q *Turn) reviews(ctx context.Context) error {
	t := q.thread
	q.start(ctx)
	in, err := q.review(ctx)
	if err != nil {
		return err
	}
	r := in.Review
	words := strings.TrimSpace("Review " + string(r.Target) + " " + r.Revision + "\n" + r.Instructions)
	t.host.show(protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
	return t.conversation.Turn(ctx, in)
}

// Steer sends a message to the model during the running turn. An open question stays open.
// The engine emits the message when the model gets it. The errors are those of
// [engine.Steerer]; the model then does not get the message.
func (t *Thread) Steer(ctx context.Context, items []protocol.InputItem) error {
	steerer, ok := t.conversation.(engine.Steerer)
	if !ok {
		return &engine.RefusedError{Err: errors.New("this engine takes no message while a turn runs")}
	}
	t.mu.Lock()
	now := t.turn
	t.mu.Unlock()
	if now == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-now.started:
	case <-now.left:
		return engine.ErrNoTurn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := steerer.Steer(ctx, items); err != nil {
		return err
	}
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	t.host.submit()
	return nil
}
