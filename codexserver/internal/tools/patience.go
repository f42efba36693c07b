package tools

import (
	"context"
	"sync"
	"time"

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

// reason is why a call no longer waits for its turns.
type reason int

const (
	reasonEnd      reason = iota // one of them has its result
	reasonQuestion               // one of them has an open question that no caller has seen
	reasonLimit                  // the call takes as long as it may
	reasonCancel                 // the client does not wait for the call any more
)

// wait waits until one of the turns has ended, the call's limit or most is over, or ctx ends. With
// questions it also returns when there is an open question that no caller has seen. It returns at once
// without turns.
func (c *call) wait(ctx context.Context, most <-chan time.Time, questions bool, turns ...*Job) reason {
	if len(turns) == 1 {
		return turns[0].wait(ctx, c.limit(), most, questions)
	}
	if len(turns) == 0 {
		return reasonEnd
	}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	first := make(chan reason, len(turns))
	for _, j := range turns {
		all.Go(func() { first <- j.wait(ctx, c.limit(), most, questions) })
	}
	return <-first
}

// limit returns a channel that is closed when the client would give up the call, or nil.
func (c *call) limit() <-chan struct{} {
	if c.Late == nil {
		return nil
	}
	return c.Late.Done()
}

// wait is [call.wait] for one turn.
func (j *Job) wait(ctx context.Context, limit <-chan struct{}, most <-chan time.Time, questions bool) reason {
	for {
		var changed <-chan struct{}
		if questions {
			if changed = j.log.Changed(); j.log.Unseen() {
				return reasonQuestion
			}
		}
		select {
		case <-j.done:
			return reasonEnd
		case <-limit:
			return reasonLimit
		case <-most:
			return reasonLimit
		case <-ctx.Done():
			return reasonCancel
		case <-changed:
		}
	}
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
	s, did := j.State(), j.log.So()
	words := "Still running: " + s.Words() + ". "
	switch s.Status {
	default:
		return nil
	case protocol.StatusRunning:
	case protocol.StatusWaiting:
		words = "Still running, and " + s.Words() + ". "
		switch {
		case c.asker() != nil && c.Background.Ask != nil:
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
