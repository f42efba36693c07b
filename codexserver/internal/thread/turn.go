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

// Begin queues a turn, without waiting, and runs it in a goroutine of its own when it is the first. It ends with life
// at the latest, with an error of [turn.Turn.Wait]. In may continue a turn of a process that has ended, see
// [protocol.TurnInput.Continue]. After the turn, when the next one may run, its diff is written into the transcript.
func (t *Thread) Begin(life context.Context, a Attend, in protocol.TurnInput) *turn.Turn {
	now := a.Turn
	if now.Order.Thread == "" { // others may read it already
		now.Order.Thread = t.ID()
	}
	now.Queue(life)
	q := t.join(a)
	go func() {
		var err error
		stack.Grow()
		if stack.Guard(t.table.log, "a turn", func() error { err = t.run(q, in); return nil }) != nil {
			err = &engine.TurnError{Message: "internal error: the turn panicked"}
		}
		_ = stack.Guard(t.table.log, "the end of a turn", func() error {
			now.End(err, func(diff string, end func()) {
				if diff != "" {
					t.kept.Changed(q.number, diff)
				}
				if a.Ended == nil {
					end()
				} else {
					a.Ended(end)
				}
			})
			return nil
		})
	}()
	return now
}

// run waits until the turn is the first, then runs it.
func (t *Thread) run(q *seat, in protocol.TurnInput) (err error) {
	defer t.leave(q)
	defer q.Turn.Interrupt(nil) // so that nothing of it is asked any more
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
	if in.Continue != nil {
		words = "[the server ended during this turn, which continues here]"
	}
	q.number = t.kept.Begin(words)
	defer func() { t.kept.End(err) }()
	t.mu.Lock()
	begun, used := t.configured, t.used
	t.mu.Unlock()
	q.Turn.Begin(ctx, begun, used)
	if in.Continue == nil {
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
	now := t.queue.running()
	if now != nil && now.checks.waits() { // such as for the result of the check
		defer t.mu.Unlock()
		now.checks.letters = append(now.checks.letters, items...)
		t.submit()
		return nil
	}
	t.mu.Unlock()
	if now == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-now.Turn.Started():
	case <-now.left:
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
