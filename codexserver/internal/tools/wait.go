package tools

import (
	"context"
	_ "embed"
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
//
//go:embed wait.json
var waitTool string

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

func callWait(ctx context.Context, c *call, a *waitArguments) *mcptypes.CallToolResult {
	if c.Shared && a.ThreadIDs == nil {
		return failure("", "codex-wait: argument /threadIds is missing: several clients share what runs here, so name the conversations to wait for")
	}
	a.canonicalize()
	ctx, stop := c.until(ctx)
	defer stop()
	jobs := c.jobs(a)
	if len(jobs) < max(len(a.ThreadIDs), 1) && c.took(ctx, a.wait()) {
		jobs = c.jobs(a)
	}
	for _, j := range jobs {
		defer c.visit(j)()
	}
	for {
		timer := time.NewTimer(a.wait())
		c.wait(ctx, timer.C, c.asker() == nil, jobs...)
		timer.Stop()
		// The call stays open while the client has a question of it, so that the answer
		// finds a call.
		if ctx.Err() != nil || !c.answers(ctx) {
			return c.rows(ctx, a, jobs)
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

// took waits until the turns of servers that were killed are known, at most most. It returns false
// if they are none of the call.
func (c *call) took(ctx context.Context, most time.Duration) bool {
	if c.Survival.Took == nil {
		return false
	}
	select {
	case <-c.Survival.Took:
	case <-time.After(most):
	case <-ctx.Done():
	}
	return true
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

// jobs returns the jobs that a call waits for.
func (c *call) jobs(a *waitArguments) []*Job {
	if a.ThreadIDs == nil {
		return c.Jobs.unread()
	}
	var jobs []*Job
	for _, id := range a.ThreadIDs {
		if j := c.Jobs.of(id); j != nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// rows makes the result: a row for each thread.
func (c *call) rows(ctx context.Context, a *waitArguments, jobs []*Job) *mcptypes.CallToolResult {
	rows, hints, named := []row{}, []string(nil), 0
	found := map[string]bool{}
	for _, j := range jobs {
		found[thread.CanonicalID(j.ThreadID())] = true
		r, ended := j.row(c.table.room(c.MaxText).most / max(len(jobs), 1))
		rows = append(rows, r)
		if named < maxHints {
			hints = append(hints, r.hint)
			named++
		}
		if ended {
			hints = append(append(hints, notDone(&j.end.did)...), j.Afterwards()...)
			c.read = append(c.read, j)
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

// rest returns the row of a thread without a job.
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

// row returns the state or the result of the job, at most most bytes. ended is true if it
// is the result.
func (j *Job) row(most int) (r row, ended bool) {
	ended = j.over()
	s := j.state(ended)
	r = row{ThreadID: j.ThreadID(), Status: s.Status, Content: s.Words(), Since: s.Since.UTC().Format(time.RFC3339), hint: hint(j.ThreadID(), nil, false)}
	j.log.Seen()
	if !ended {
		return r, false
	}
	r.Content, r.Since = j.form.cut(j.end.did.Content, most, j.thread), ""
	r.hint = j.named(j.end.cut || r.Content != j.end.did.Content)
	r.whole = j.WithAfterwards(most)
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

// Answered records that the client has the results that the call returns. If the client no
// longer waits for a call, its results are kept for the next one.
func (c *Call) Answered() {
	for _, j := range c.read {
		j.take()
	}
}
