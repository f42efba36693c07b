package appserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// promise is a turn that the app-server may not have started yet.
type promise struct {
	begun chan struct{} // closed when turn is set, or when the start has failed
	turn  *turn
}

// Steer implements [engine.Steerer].
func (c *conversation) Steer(ctx context.Context, items []protocol.InputItem) error {
	input, err := inputItems(items)
	if err == nil && len(input) == 0 {
		err = errors.New("the message is empty")
	}
	if err != nil {
		return &engine.RefusedError{Err: err}
	}
	now := c.running.Load()
	if now == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-now.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now.turn == nil {
		return engine.ErrNoTurn
	}
	return now.turn.steer(ctx, &letter{input: input})
}

// steer sends a message to the turn. It also returns [engine.ErrNoTurn] if the turn ended
// while the app-server's answer was on its way.
func (r *turn) steer(ctx context.Context, l *letter) error {
	c := r.thread.child
	select {
	case <-r.app.Started(): // some versions refuse messages before turn/started
	case <-r.app.Ended():
		return engine.ErrNoTurn
	case <-c.end.gone:
		return engine.ErrNoTurn
	case <-r.ctx.Done():
		return engine.ErrNoTurn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !r.send(l) {
		return engine.ErrNoTurn
	}
	err := c.steer(ctx, &apptypes.SteerParams{ThreadID: r.thread.id, ExpectedTurnID: r.app.ID(), Input: l.input})
	return c.steered(err, r.sent(l, err == nil))
}

// steer sends a message to a running turn.
func (c *child) steer(ctx context.Context, p *apptypes.SteerParams) error {
	return within(ctx, controlLimit, apptypes.CallTurnSteer, func(ctx context.Context) error { return c.app.Steer(ctx, p) })
}

// steered returns the error of Steer for the result of turn/steer. InTime is the result of
// [turn.sent].
func (c *child) steered(err error, inTime bool) error {
	var answer *jsonrpc.Error
	switch {
	case err == nil && inTime:
		return nil
	case err == nil, errors.Is(err, jsonrpc.ErrClosed):
		return engine.ErrNoTurn
	case !errors.As(err, &answer):
		return err
	}
	if err = c.explain(err); errors.Is(err, errNoTurn) {
		return engine.ErrNoTurn
	}
	return &engine.RefusedError{Err: err}
}

// send records a message that is about to be sent. It returns false if the turn has ended.
func (r *turn) send(l *letter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.messages.letters = append(r.messages.letters, l)
	}
	return !r.ended
}

// sent records whether the app-server took a message. It returns false if the turn ended
// first: the next turn then does not repeat the message.
func (r *turn) sent(l *letter, taken bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		l.taken = taken
	}
	return l.taken || l.read
}

// read reports that the model has read a message of the user, unless it is the turn's own input.
func (r *turn) read(raw json.RawMessage) {
	m, ok := userMessage(raw)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.messages.read(m.Message, r.ended) {
		r.host.Emit(m)
	}
}

// unread returns the messages for the next turn.
func (r *turn) unread(left []apptypes.Input) []apptypes.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages.unread(left)
}
