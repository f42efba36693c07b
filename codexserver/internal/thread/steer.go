package thread

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

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
