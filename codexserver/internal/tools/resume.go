package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A turn of a task or in the background can outlive its process: [Turn.Resume] is what
// another one needs to continue it, with [Table.Continue].

// Unfinished is a turn whose process has ended.
type Unfinished struct {
	// Thread is the id of its thread.
	Thread string
	// Resume is the last [Turn.Resume] of the turn, and Did the last [Turn.Did].
	Resume, Did jsontext.Value
	// Ended is how many servers have ended while the turn worked.
	Ended int
}

// maxContinued is how many servers may end while a turn works. A turn that ends its server each time, such as
// by its memory, is given up.
const maxContinued = 5

// resume is what continues a turn, in the process that began it and in another one.
type resume struct {
	Key    string               `json:"key"`            // see [protocol.TurnInput]; "" if no other process continues the turn
	Began  time.Time            `json:"began,omitzero"` // by another process
	Used   *protocol.TokenUsage `json:"used,omitzero"`  // what the thread had used
	Budget *turn.Budget         `json:",embed"`
	Schema jsontext.Value       `json:"schema,omitzero"` // of the answer

	Worktree *protocol.Worktree `json:"worktree,omitzero"` // that the call made for its thread

	Ended int `json:"-"` // see [Unfinished]
}

// Continues reports whether turns of processes that have ended are continued.
func (t *Table) Continues() bool {
	return t.options.Continues && engine.TraitsOf(t.engine).CanContinue != nil
}

// CanContinue returns why no turn can be continued now, or nil.
func (t *Table) CanContinue(ctx context.Context) error {
	if !t.Continues() {
		return errors.New("this server does not continue turns of others")
	}
	return engine.TraitsOf(t.engine).CanContinue(ctx)
}

// Resume returns what another process needs to continue the turn, or nil if none does, such
// as for a turn that a person has aborted.
func (t *Turn) Resume() jsontext.Value {
	r, stopped := t.resume, false
	if r.Began, r.Used, stopped = t.log.Began(); r.Key == "" || stopped {
		return nil
	}
	raw, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil // such as a budget that is not a number
	}
	return raw
}

// Continue opens the thread of a turn of another process, and returns a function that runs the rest of the turn
// and returns its result; in the background it returns at once, and codex-wait has the result. If Continue fails,
// another process may still continue the turn.
func (t *Table) Continue(ctx context.Context, c *Call, u Unfinished, background bool) (run func() *mcptypes.CallToolResult, err error) {
	var before resume
	if err := json.Unmarshal(u.Resume, &before); err != nil {
		return nil, fmt.Errorf("continuing a turn: %w", err)
	}
	if before.Key == "" {
		return nil, errors.New("continuing a turn: it has no key")
	}
	if before.Began.IsZero() {
		before.Began = time.Now()
	}
	before.Ended = u.Ended
	t.sweep(c.Turns) // after what was killed
	c.table = t
	turn := c.newTurn(false)
	turn.background, turn.resume = background, before
	turn.in = protocol.TurnInput{OutputSchema: []byte(before.Schema), MaxTokens: maxTokens(before.Budget)}
	if before.Schema != nil {
		if _, err = outputschema.Compile([]byte(before.Schema)); err != nil {
			return nil, err
		}
	}
	did := &protocol.TurnResult{}
	if json.Unmarshal(u.Did, did) != nil {
		did = &protocol.TurnResult{}
	}
	turn.log.Continue(did, before.Began, before.Used)
	if c.leave, err = t.limit.enter(); err != nil {
		return nil, err
	}
	if turn.thread, err = t.revive(ctx, c, u.Thread, turn.attend, protocol.Config{Continues: true}); err != nil {
		c.leave()
		return nil, err
	}
	return func() *mcptypes.CallToolResult {
		defer func() { c.leave() }() // unless the turn has it
		return c.run(ctx, turn)
	}, nil
}

// Did returns what the turn has done until now, as the JSON of a turn that was aborted. It has
// no content and at most [protocol.MinResult] bytes.
func (t *Turn) Did() jsontext.Value {
	r := t.log.So()
	r.ThreadID, r.Content = t.ThreadID(), ""
	if r.Status == "" || !r.Status.Ended() {
		r.Status = protocol.StatusAborted
	}
	return r.JSON(protocol.MinResult)
}
