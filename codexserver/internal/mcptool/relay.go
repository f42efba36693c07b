package mcptool

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// decideTool is codex-wait for a client that only decides. It has the form of waitTool's
// results.
const decideTool = `{
	"name": "codex-wait",
	"title": "Codex Wait",
	"description": "Wait for questions of another user's work. Each is put to the person who approves; returns what was decided, or that nothing was asked. Call it again for the next.",
	"inputSchema": {
		"type": "object",
		"additionalProperties": false,
		"properties": {
			"seconds": {"type": "number", "minimum": 0, "maximum": 50, "description": "To wait at most. Default: 45."}
		}
	},
	"outputSchema": {
		"type": "object",
		"required": ["threads"],
		"properties": {
			"threads": {
				"type": "array",
				"items": {
					"type": "object",
					"required": ["threadId", "status", "content"],
					"properties": {
						"threadId": {"type": "string"},
						"status": {"type": "string", "enum": ["running"]},
						"content": {"type": "string", "description": "The decision, and on what."}
					}
				}
			}
		}
	},
	"annotations": {"readOnlyHint": true, "openWorldHint": false}
}`

// Deciding returns the tools of clients that only answer questions of others' turns: a
// codex-wait, whether t offers one or not.
func (t *Table) Deciding() *Table {
	return &Table{options: t.options, engine: t.engine, bounds: t.bounds, turns: t.turns, deciding: true, tools: []tool{{"codex-wait", decideTool, callDecide}}}
}

type decideArguments struct {
	Seconds *float64 `json:"seconds"`
}

func callDecide(ctx context.Context, c *Call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a decideArguments
	err := decodeArguments(raw, &a)
	if err == nil {
		err = checkMembers[decideArguments](raw)
	}
	if err != nil {
		return failure("", "codex-wait: "+err.Error())
	}
	if c.Relay == nil {
		return failure("", "codex-wait: this client cannot be asked: it shows no forms, or may not approve")
	}
	return c.decide(ctx, &waitArguments{Seconds: a.Seconds})
}

// decide is codex-wait for an approver. It asks the client the questions of others, and
// returns after the first decision, or when the time is over. It does not return while the
// client has an open question.
func (c *Call) decide(ctx context.Context, a *waitArguments) *mcptypes.CallToolResult {
	t := &taker{Place: c.Taker, changed: make(chan struct{})}
	leave := c.Relay.Attach(t)
	defer leave()
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
	t.change(-1, &row{ThreadID: thread.CanonicalID(r.Thread.ID), Status: Running, Content: string(out.Decision) + ": " + brief(subject(r))})
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
