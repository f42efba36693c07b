package tools

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// waitTool is for clients whose calls must be short.
var waitTool = define[waitArguments](tool{
	name: "codex-wait", purpose: "wait for conversations that run in the background, and read their results.",
	definition: `{
	"name": "codex-wait",
	"title": "Codex Wait",
	"description": "Wait for conversations that run in the background. Returns when the first has its result, or the time is over, with the status of each; waiting is for a person's approval. Call it again for those that still run.",
	"inputSchema": {
		"type": "object",
		"additionalProperties": false,
		"properties": {
			"threadIds": {"type": "array", "items": {"type": "string"}, "description": "Default: all that run in the background."},
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
					"required": ["threadId", "status"],
					"properties": {
						"threadId": {"type": "string"},
						"status": {"type": "string", "enum": ["running", "waiting", "completed", "incomplete", "failed", "aborted", "idle", "unknown"]},
						"content": {"type": "string", "description": "The answer, with the other members of codex's result; before the end what Codex does now."},
						"since": {"type": "string", "description": "When it began with that."}
					}
				}
			}
		}
	},
	"annotations": {"readOnlyHint": true, "openWorldHint": false}
}`,
})

type waitArguments struct {
	ThreadIDs []string `json:"threadIds"`
	Seconds   *float64 `json:"seconds"` // within the bounds of the tool's definition
}

// wait returns the time to wait, from the argument seconds.
func (a *waitArguments) wait() time.Duration {
	if a.Seconds == nil {
		return 45 * time.Second
	}
	return time.Duration(*a.Seconds * float64(time.Second))
}

// row is the result of codex-wait for one thread.
type row struct {
	ThreadID string              `json:"threadId"`
	Status   protocol.TurnStatus `json:"status"`
	Content  string              `json:"content"`
	Since    string              `json:"since,omitzero"`

	whole jsontext.Value // the result, instead of the members
	hint  string         // names the thread for the client's model
}

// run implements [arguments].
func (a *waitArguments) run(ctx context.Context, c *call) *mcptypes.CallToolResult {
	if c.Shared && a.ThreadIDs == nil {
		return failure("", "codex-wait: argument /threadIds is missing: several clients share what runs here, so name the conversations to wait for")
	}
	a.canonicalize()
	ctx = c.until(ctx)
	turns := c.turns(a)
	if len(turns) < max(len(a.ThreadIDs), 1) && c.Survival.Known != nil {
		a.waitFor(ctx, false, known(c.Survival.Known))
		turns = c.turns(a)
	}
	var all []Pending
	for _, t := range turns {
		defer c.attach(t)()
		all = append(all, t)
	}
	for {
		a.waitFor(ctx, c.place() == nil, all...)
		// The call stays open while the client has a question of it, so that the answer
		// finds a call.
		if ctx.Err() != nil || !c.answers(ctx) {
			return c.rows(ctx, a, turns)
		}
	}
}

// answers waits while the client has a question of the call. It returns false if there was none.
func (c *call) answers(ctx context.Context) (waited bool) {
	for ; c.Open != nil; waited = true {
		open, changed := c.Open()
		if !open {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true
		}
	}
	return waited
}

// known is pending until the turns of servers that were killed are known.
type known <-chan struct{}

// Done implements [Pending].
func (k known) Done() <-chan struct{} { return k }

// Asks implements [Pending].
func (known) Asks() (open bool, changed <-chan struct{}) { return false, nil }

// waitFor is [Wait] for at most the time in the arguments.
func (a *waitArguments) waitFor(ctx context.Context, questions bool, all ...Pending) {
	ctx, stop := context.WithTimeoutCause(ctx, a.wait(), ErrLimit)
	defer stop()
	Wait(ctx, questions, all...)
}

// canonicalize makes the ids canonical and removes duplicates.
func (a *waitArguments) canonicalize() {
	for i, id := range a.ThreadIDs {
		a.ThreadIDs[i] = thread.CanonicalID(id)
	}
	seen := map[string]bool{}
	a.ThreadIDs = slices.DeleteFunc(a.ThreadIDs, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// turns returns the turns that a call waits for.
func (c *call) turns(a *waitArguments) []*Turn {
	if a.ThreadIDs == nil {
		return c.Turns.unread()
	}
	var turns []*Turn
	for _, id := range a.ThreadIDs {
		if t := c.Turns.of(id); t != nil {
			turns = append(turns, t)
		}
	}
	return turns
}

// rows makes the result: a row for each thread.
func (c *call) rows(ctx context.Context, a *waitArguments, turns []*Turn) *mcptypes.CallToolResult {
	rows, hints, named := []row{}, []string(nil), 0
	found := map[string]bool{}
	for _, t := range turns {
		found[thread.CanonicalID(t.ThreadID())] = true
		r, ended := t.row(c.table.room(c.MaxText).most / max(len(turns), 1))
		rows = append(rows, r)
		if named < maxHints {
			hints = append(hints, r.hint)
			named++
		}
		if ended {
			hints = append(append(hints, notDone(&t.outcome.did)...), t.Afterwards()...)
			c.read = append(c.read, t)
		}
	}
	for _, id := range a.ThreadIDs {
		if !found[id] {
			rows = append(rows, c.rest(ctx, id))
		}
	}
	r := rowsResult(rows, "Nothing runs in the background.")
	forModel(r, hints...)
	return r
}

// rest returns the row of a thread without a turn.
func (c *call) rest(ctx context.Context, id string) row {
	if c.open(id) != nil {
		return row{ThreadID: id, Status: protocol.StatusIdle, Content: "No turn runs. codex-reply continues the conversation."}
	}
	if held := c.holder(ctx, id); held != nil {
		return row{ThreadID: id, Status: protocol.StatusRunning, Content: held.Error()}
	}
	return row{ThreadID: id, Status: protocol.StatusUnknown, Content: "No turn of this conversation was started here. codex-reply continues one that has ended."}
}

// holder returns the error of codex-reply if another program runs a turn of the thread with an id.
func (c *call) holder(ctx context.Context, id string) error {
	holder := engine.TraitsOf(c.table.engine).Holder
	if holder == nil || c.Threads.OpenOnly() {
		return nil
	}
	return holder(context.WithoutCancel(ctx), id)
}

// rowsResult returns a result with the rows, or with the text none.
func rowsResult(rows []row, none string) *mcptypes.CallToolResult {
	var text strings.Builder
	for i, r := range rows {
		if i > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString(r.ThreadID + " (" + string(r.Status) + "): " + r.Content)
	}
	if len(rows) == 0 {
		text.WriteString(none)
	}
	structured, err := jsonv2.Marshal(map[string][]row{"threads": rows})
	if err != nil {
		return failure("", "codex-wait: "+err.Error())
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text(text.String()), StructuredContent: structured}
}

// row returns the state or the result of the turn, at most most bytes. ended is true if it
// is the result.
func (t *Turn) row(most int) (r row, ended bool) {
	ended = t.over()
	s := t.state(ended)
	r = row{ThreadID: t.ThreadID(), Status: s.Status, Content: s.Words(), Since: s.Since.UTC().Format(time.RFC3339), hint: hint(t.ThreadID(), nil, false)}
	t.log.Seen()
	if !ended {
		return r, false
	}
	did := &t.outcome.did
	r.Content, r.Since = t.form.cut(did.Content, most, t.thread), ""
	r.hint = t.named(t.outcome.cut || r.Content != did.Content)
	r.whole = t.WithAfterwards(most)
	return r, true
}

// MarshalJSONTo implements [jsonv2.MarshalerTo].
func (r row) MarshalJSONTo(e *jsontext.Encoder) error {
	if r.whole != nil {
		return e.WriteValue(r.whole)
	}
	type plain row
	return jsonv2.MarshalEncode(e, plain(r))
}
