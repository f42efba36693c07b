package mcptool

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/hosts"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// underMinute is how long a call of a host may take that gives up every call after a minute.
const underMinute = 50 * time.Second

// Patience returns how long a call of a tool may take before it ends although its turn
// continues. 0 means no limit. Host is the client's name. A bare client is one that declares
// nothing and asks for no progress, as a program with an SDK and its time-out does, under any name.
func (t *Table) Patience(tool, host string, bare bool) time.Duration {
	if !IsTurn(tool) && tool != "codex-wait" || !t.Has("codex-wait") {
		return 0
	}
	if t.options.Patience != 0 {
		return max(t.options.Patience, 0)
	}
	if bare || hosts.EndsCallsAfterMinute(host) {
		return underMinute
	}
	return 0
}

// patient runs a turn for a call. If the turn has not ended when the client would give up
// the call, the call ends and the turn continues in the background.
func (c *call) patient(ctx context.Context, j *Job, ticket *thread.Ticket, in protocol.TurnInput) *mcptypes.CallToolResult {
	turn, cancel := context.WithCancelCause(c.Jobs.ctx)
	keep := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	c.Jobs.begin(func() {
		defer cancel(nil)
		defer c.Jobs.ended(j)
		j.run(turn, ticket, in)
	})
	select {
	case <-c.Late.Done():
		if c.Jobs.detach(j) && keep() {
			if c.Survival.Kept != nil {
				c.Survival.Kept(j)
			}
			if r := j.still(c); r != nil {
				return r
			}
			c.read = append(c.read, j)
		}
	case <-j.done:
	}
	<-j.done
	return j.end.result
}

// until returns a context that ends with ctx, or when the client would give up the call.
func (c *call) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if c.Late == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(c.Late, cancel)
	return ctx, func() { stop(); cancel() }
}

// still returns the result of a call that ends before its turn: what the turn does and has
// done, and the question that it waits for. It returns nil if the turn has ended.
func (j *Job) still(c *call) *mcptypes.CallToolResult {
	s, did := j.State(), j.report.Result()
	words := "Still running: " + s.Words() + ". "
	switch s.Status {
	default:
		return nil
	case protocol.StatusRunning:
	case protocol.StatusWaiting:
		words = "Still running, and " + s.Words() + ". "
		switch {
		case c.asker() != nil && c.Session != nil:
			words += "The client still has the question. "
		case c.asker() != nil:
			words += "codex-wait asks it again. "
		default:
			words += "A person has to answer it where this server asks, not in this client. "
		}
	}
	did.ThreadID, did.Status = j.ThreadID(), s.Status
	if len(did.Commands)+len(did.Changes) > 0 {
		words += "Until now " + doneUntil(&did)
		if changed := turnlog.ShowChanges(did.Changes); changed != "" {
			words += ": " + changed
		}
		words += ". "
	}
	words += "The turn continues in the background: call codex-wait with threadIds [\"" + j.ThreadID() + "\"] for its result."
	did.Content = words
	r := j.interim(s.Status, words)
	r.StructuredContent = did.JSON(protocol.MinResult)
	return r
}
