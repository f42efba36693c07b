package thread

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Steer sends the model a message within the running turn. A question that is open stays
// open. The engine shows the message when the model comes to it. The error is of the
// kinds that [engine.Steerer] has; the message was then not taken.
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
	case <-now.ended:
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
