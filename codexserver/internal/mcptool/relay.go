package mcptool

import (
	"context"
	_ "embed"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
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
	if c.Audience.Relay == nil {
		return failure("", "codex-wait: this client cannot be asked: it shows no forms, or may not approve")
	}
	return c.decide(ctx, a)
}

// decide is codex-wait for an approver. It asks the client the questions of others, and
// returns after the first decision, or when the time is over. It does not return while the
// client has an open question.
func (c *call) decide(ctx context.Context, a *waitArguments) *mcptypes.CallToolResult {
	w := c.newWaiter()
	defer c.Audience.Relay.Attach(w.place(func(*approval.Request) bool { return true }))()
	ctx, stop := c.until(ctx)
	defer stop()
	timer := time.NewTimer(a.wait())
	defer timer.Stop()
	for over := false; ; {
		rows, out, changed := w.state()
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

// decidedRow is the row of codex-wait for a question that the client has decided.
func decidedRow(r *approval.Request, out elicit.Outcome) *row {
	return &row{ThreadID: thread.CanonicalID(r.Thread.ID), Status: Running, Content: string(out.Decision) + ": " + turnlog.Brief(turnlog.Subject(r))}
}
