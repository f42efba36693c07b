package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Unfinished is a turn whose process has ended.
type Unfinished struct {
	// Thread is the id of its thread.
	Thread string
	// Resume is the last [turn.Turn.Resume], and Did the last [turn.Turn.Did].
	Resume, Did jsontext.Value
}

// Continues reports whether turns of processes that have ended are continued.
func (t *Table) Continues() bool {
	return t.options.Continues && t.traits.CanContinue != nil
}

// CanContinue returns why no turn can be continued now, or nil.
func (t *Table) CanContinue(ctx context.Context) error {
	if !t.Continues() {
		return errors.New("this server does not continue turns of others")
	}
	return t.traits.CanContinue(ctx)
}

// Continue opens the thread of a turn of another process, and returns a function that begins the rest of the turn, as
// [Table.Begin] does; in the background codex-wait has the result. If Continue fails,
// another process may still continue the turn.
func (t *Table) Continue(ctx context.Context, c *Call, u Unfinished, background bool) (run func() *mcptypes.CallToolResult, err error) {
	var before turn.Resume
	if err := json.Unmarshal(u.Resume, &before); err != nil {
		return nil, fmt.Errorf("continuing a turn: %w", err)
	}
	if before.Began.IsZero() {
		before.Began = time.Now()
	}
	t.sweep(c.Turns) // after what was killed
	c.table = t
	b, a := c.newTurn(false)
	b.background, b.Order.Resume = background, before
	in := protocol.TurnInput{OutputSchema: []byte(before.Schema), MaxTokens: maxTokens(before.Budget), Continue: func(words string) { b.Remark(words) }}
	did := &protocol.TurnResult{}
	_ = json.Unmarshal(u.Did, did) // nil before it did anything
	b.Turn.Continue(did, before.Began, before.Used)
	if c.leave, err = t.limit.Enter(""); err != nil {
		return nil, err
	}
	th, err := c.revive(ctx, u.Thread, protocol.Config{Continues: true}, a)
	if err != nil {
		c.leave()
		return nil, err
	}
	return func() *mcptypes.CallToolResult {
		defer func() { c.leave() }() // unless the turn has it
		return c.run(ctx, b, th, a, in)
	}, nil
}
