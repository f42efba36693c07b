package mcptool

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// decideTool is codex-wait for a client that only decides. It has the form of waitTool's
// results.
//
//go:embed decide.json
var decideTool string

// Deciding returns the tools of clients that only answer questions of others' turns: a
// codex-wait, whether t offers one or not.
func (t *Table) Deciding() *Table {
	return &Table{options: t.options, engine: t.engine, turns: t.turns, deciding: true, tools: []tool{newTool("codex-wait", decideTool, with(callDecide))}}
}

func callDecide(ctx context.Context, c *call, a *waitArguments) *mcptypes.CallToolResult {
	if c.Relay == nil {
		return failure("", "codex-wait: this client cannot be asked: it shows no forms, or may not approve")
	}
	return c.decide(ctx, a)
}

// decide is codex-wait for an approver. It asks the client the questions of others, and
// returns after the first decision, or when the time is over. It does not return while the
// client has an open question.
func (c *call) decide(ctx context.Context, a *waitArguments) *mcptypes.CallToolResult {
	t := &taker{Place: c.Taker, changed: make(chan struct{})}
	leave := c.Relay.Attach(t)
	defer leave()
	ctx, stop := c.until(ctx)
	defer stop()
	timer := time.NewTimer(a.wait())
	defer timer.Stop()
	for over := false; ; {
		rows, out, changed := t.state()
		if out == 0 && (over || len(rows) > 0) {
			return rowsResult(rows, "No question was asked.")
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			return rowsResult(rows, "No question was asked.")
		}
	}
}

// taker is the place that asks the client the questions of others.
type taker struct {
	board.Place

	mu      sync.Mutex
	rows    []row // decided
	out     int   // with the client
	changed chan struct{}
}

// Ask implements [board.Place].
func (t *taker) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	t.change(1, nil)
	out, err := t.Place.Ask(ctx, r)
	if err != nil || ctx.Err() != nil || out.ForCaller() != "" {
		t.change(-1, nil)
		return out, err
	}
	t.change(-1, &row{ThreadID: thread.CanonicalID(r.Thread.ID), Status: Running, Content: string(out.Decision) + ": " + turnlog.Brief(turnlog.Subject(r))})
	return out, nil
}

func (t *taker) change(out int, decided *row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out += out
	if decided != nil {
		t.rows = append(t.rows, *decided)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *taker) state() (rows []row, out int, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]row{}, t.rows...), t.out, t.changed
}
