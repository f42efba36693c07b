package tools

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Continues reports whether turns of processes that have ended are continued.
func (t *Table) Continues() bool {
	return t.options.Continues && t.traits.CanContinue != nil
}

// CanContinue returns why no turn can be continued now, or nil, if turns are continued at all.
func (t *Table) CanContinue(ctx context.Context) error { return t.traits.CanContinue(ctx) }

// Continue opens the thread of a turn that another process has left, and begins the rest of the turn. It returns nil if
// [Call.Result] waits for that; in the background codex-wait has the result. Before is the last [turn.Turn.Resume], and
// done the last [turn.Turn.Did]. If Continue fails, another process may still continue the turn.
func (t *Table) Continue(
	ctx context.Context, c *Call, before turn.Resume, done *protocol.TurnResult, background bool,
) (r *mcptypes.CallToolResult, err error) {
	t.sweep(c.Turns) // after what was killed
	c.table = t
	if before.Attempts != nil {
		return t.continueAttempts(ctx, c, before, background)
	}
	b, a := c.newTurn(false)
	b.background = background
	in := b.continues(&before, done)
	if c.leave, err = t.limit.Enter(""); err != nil {
		return nil, err
	}
	defer func() { c.leave() }() // unless the turn has it
	th, err := c.revive(ctx, done.ThreadID, protocol.Config{Continues: true}, a)
	if err != nil {
		return nil, err
	}
	t.commits(b, th, before.Subject)
	return c.run(ctx, b, th, a, in), nil
}
