package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// waitTool is for clients whose calls must be short.
var waitTool = &tool{
	name: "codex-wait", title: "Codex Wait", hints: &reads,
	description: "Wait for conversations that run in the background. " +
		"Returns when the first has its result, or the time is over, with the status of each; " +
		"waiting is for a person's approval. Call it again for those that still run.",
	purpose:   "wait for conversations that run in the background, and read their results.",
	arguments: func() arguments { return new(waitArguments) },
	result:    func() *schema { return resultOf[waitResult](func(string, *schema) bool { return true }) },
}

type waitArguments struct {
	ThreadIDs []string `json:"threadIds" about:"Default: all that run in the background."`
	Seconds   *float64 `json:"seconds" max:"50" about:"To wait at most. Default: 45."`
}

// wait returns the time to wait.
func (a *waitArguments) wait() time.Duration {
	if a.Seconds == nil {
		return 45 * time.Second
	}
	return time.Duration(*a.Seconds * float64(time.Second))
}

func (a *waitArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
	if c.Turns.shared && a.ThreadIDs == nil {
		return nil, errors.New("argument /threadIds is missing: " +
			"several clients share what runs here, so name the conversations to wait for")
	}
	for i, id := range a.ThreadIDs {
		a.ThreadIDs[i] = thread.CanonicalID(id)
	}
	ctx = c.until(ctx)
	turns := c.turns(a)
	if len(turns) < max(len(a.ThreadIDs), 1) && c.Known != nil {
		select {
		case <-c.Known:
		case <-time.After(a.wait()):
		case <-ctx.Done():
		}
		turns = c.turns(a)
	}
	for _, t := range turns {
		defer c.attach(t)()
	}
	for {
		within, stop := context.WithTimeoutCause(ctx, a.wait(), ErrLimit)
		questions := c.place() == nil
		var waits sync.WaitGroup
		for _, t := range turns {
			waits.Go(func() {
				_ = Wait(within, questions, t) // whatever ends it
				stop()                         // ends the others
			})
		}
		waits.Wait()
		stop()
		// The call stays open while the client has a question of it, so that the answer
		// finds a call.
		if ctx.Err() != nil || !c.answers(ctx) {
			return c.rows(ctx, a, turns), nil
		}
	}
}

// answers waits while the client has a question of the call. It returns false if there was none.
func (c *Call) answers(ctx context.Context) (waited bool) {
	for ; c.Inbox != nil; waited = true {
		changed := c.Inbox.Changed()
		if !c.Inbox.Asks() {
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

// turns returns the turns that a call waits for, each once.
func (c *Call) turns(a *waitArguments) []*begun {
	if a.ThreadIDs == nil {
		return c.Turns.unread()
	}
	var turns []*begun
	for _, id := range a.ThreadIDs {
		if t := c.Turns.of(id); t != nil && !slices.Contains(turns, t) {
			turns = append(turns, t)
		}
	}
	return turns
}

// waitResult is the result, for its schema. A thread whose turn has ended has that result in place of a row.
type waitResult struct {
	Threads []row `json:"threads" required:"true" parts:"true"`
}

// row is the result for one thread without a result of a turn.
type row struct {
	ThreadID string              `json:"threadId" required:"true"`
	Status   protocol.TurnStatus `json:"status" required:"true" enum:"running,waiting,completed,incomplete,failed,aborted,idle,unknown"`
	Content  string              `json:"content" about:"The answer, with the other members of codex's result; before the end what Codex does now."`
	Since    string              `json:"since,omitzero" about:"When it began with that."`
}

// rows makes the result: a row for each thread.
func (c *Call) rows(ctx context.Context, a *waitArguments, turns []*begun) *mcptypes.CallToolResult {
	rows, words, hints, found := []any{}, []string(nil), []string(nil), map[string]bool{}
	add := func(r row, whole any) {
		rows, words = append(rows, whole), append(words, r.ThreadID+" ("+string(r.Status)+"): "+r.Content)
	}
	for i, t := range turns {
		found[thread.CanonicalID(t.ThreadID())] = true
		s, line, more := t.State(), hint(t.ThreadID(), nil, false), []string(nil)
		r := row{ThreadID: t.ThreadID(), Status: s.Status, Content: s.Line(), Since: s.Since.UTC().Format(time.RFC3339)}
		t.Seen()
		if s.Status.Ended() {
			result, most := t.Result(), c.maxResult()/len(turns)
			r.Content = result.Cut(result.Content, most)
			r.ThreadID = result.ThreadID // of the best attempt
			line = hint(r.ThreadID, &result.TurnResult, result.More || t.Order.Shows && r.Content != result.Content)
			more = notDone(&result)
			add(r, jsontext.Value(result.JSON(most)))
			c.reads(t)
		} else {
			add(r, r)
		}
		if i < maxHints {
			hints = append(hints, line)
		}
		hints = append(hints, more...)
	}
	for _, id := range a.ThreadIDs {
		if !found[id] {
			found[id] = true
			r := c.rest(ctx, id)
			add(r, r)
		}
	}
	if len(rows) == 0 {
		words = []string{"Nothing runs in the background."}
	}
	r := structured(map[string]any{"threads": rows}, strings.Join(words, "\n\n"))
	forModel(r, hints...)
	return r
}

// rest returns the row of a thread without a turn.
func (c *Call) rest(ctx context.Context, id string) row {
	const unknown = "No turn of this conversation was started here. codex-reply continues one that has ended."
	r := row{ThreadID: id, Status: protocol.StatusUnknown, Content: unknown}
	if c.open(id) != nil {
		r.Status, r.Content = protocol.StatusIdle, "No turn runs. codex-reply continues the conversation."
	} else if holder := c.table.traits.Holder; holder != nil && !c.Threads.OpenOnly() {
		if held := holder(context.WithoutCancel(ctx), id); held != nil { // as codex-reply says it
			r.Status, r.Content = protocol.StatusRunning, held.Error()
		}
	}
	return r
}
