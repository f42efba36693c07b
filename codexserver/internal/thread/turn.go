package thread

import (
	"cmp"
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// Queued is a turn in the queue of its thread. Who queued it runs it, and ends it then.
type Queued struct {
	thread *Thread
	seat   *seat
	input  protocol.TurnInput
}

// Queue queues a turn, without waiting. It ends with life at the latest, with an error of [turn.Turn.Wait]. The input may
// continue a turn of a process that has ended, see [protocol.TurnInput.Continue].
func (t *Thread) Queue(life context.Context, a Attend, in protocol.TurnInput) Queued {
	if a.Turn.Order.Thread == "" { // others may read it already
		a.Turn.Order.Thread = t.ID()
	}
	a.Turn.Queue(life)
	return Queued{t, t.join(&seat{Attend: a}), in}
}

// Run runs the turn when it is the first, and makes its result, which [turn.Turn.End] publishes. Its diff is in the
// transcript then, and the next turn may run. A panic of the engine is an error of the turn. Run is called at the
// beginning of a goroutine.
func (q Queued) Run() {
	stack.Grow()
	log := q.thread.table.log
	var err error
	if stack.Guard(log, "a turn", func() error { err = q.thread.run(q.seat, q.input); return nil }) != nil {
		err = &engine.TurnError{Message: "internal error: the turn panicked"}
	}
	_ = stack.Guard(log, "the end of a turn", func() error {
		if diff := q.seat.Turn.Conclude(err); diff != "" {
			q.thread.kept.Changed(q.seat.number, diff)
		}
		return nil
	})
}

// Begin queues a turn, as [Thread.Queue] does, and runs and ends it in a goroutine of its own.
func (t *Thread) Begin(life context.Context, a Attend, in protocol.TurnInput) *turn.Turn {
	q := t.Queue(life, a, in)
	go func() {
		q.Run()
		a.Turn.End()
	}()
	return a.Turn
}

// run waits until the turn is the first, then runs it.
func (t *Thread) run(q *seat, in protocol.TurnInput) (err error) {
	defer t.leave(q)
	defer q.Turn.Release() // so that nothing of it is asked any more
	ctx := q.Turn.Context()
	if err := t.take(ctx, q); err != nil {
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
	}
	var metrics TurnObserver
	if observe := t.table.Observe; observe != nil {
		if metrics = observe(t.ID()); metrics != nil {
			defer func() { metrics.End(err) }()
		}
	}
	defer t.begins(q, metrics)()
	defer func() { t.ends(q, ctx.Err() != nil) }() // also after a panic
	err = t.work(ctx, q, in)
	if spent, ok := errors.AsType[*turn.SpentError](context.Cause(ctx)); ok && err != nil {
		err = &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: spent}
	}
	return err
}

// work runs the turn, which is the first.
func (t *Thread) work(ctx context.Context, q *seat, in protocol.TurnInput) (err error) {
	words := cmp.Or(q.Review, protocol.TextOf(in.Items))
	goesOn := in.Continue != nil && q.Turn.Order.Setup == nil
	if goesOn {
		words = "[the server ended during this turn, which continues here]"
	}
	q.number = t.kept.Begin(words)
	defer func() { t.kept.End(err) }()
	t.mu.Lock()
	begun, used := t.configured, t.used
	t.mu.Unlock()
	q.Turn.Begin(ctx, begun, used)
	if !goesOn {
		t.show(protocol.UserMessage{Message: words, Kind: protocol.UserPlain})
	}
	leave, err := t.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return t.tries(ctx, q, in)
}

// denyInReview is the reason for the model.
const denyInReview = "this is a review, which changes nothing and asks for nothing"

// Steer sends a message to the model during the running turn. An open question stays open.
// The engine emits the message when the model gets it. The errors are those of
// [engine.Steerer]; the model then does not get the message.
func (t *Thread) Steer(ctx context.Context, items []protocol.InputItem) error {
	steerer, ok := t.conversation.(engine.Steerer)
	if !ok {
		return &engine.RefusedError{Err: errors.New("this engine takes no message while a turn runs")}
	}
	t.mu.Lock()
	running := t.queue.running()
	if running != nil && running.checks.waits() { // such as for the result of the check
		defer t.mu.Unlock()
		running.checks.letters = append(running.checks.letters, items...)
		t.submit()
		return nil
	}
	t.mu.Unlock()
	if running == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-running.Turn.Started():
	case <-running.left:
		return engine.ErrNoTurn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := steerer.Steer(ctx, items); err != nil {
		return err
	}
	t.submit()
	return nil
}
