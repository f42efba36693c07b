package tools

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/internal/hosts"
)

var (
	// ErrLimit is the cause of the end of a context whose call takes as long as it may.
	ErrLimit = errors.New("the call takes as long as it may")
	// ErrAsks is the error of [Wait] for a question, or other news, for a client that still waits.
	ErrAsks = errors.New("the client is asked")
)

// Pending is what a call can wait for.
type Pending interface {
	// Done returns a channel that is closed at the end.
	Done() <-chan struct{}
	// Changed returns a channel that is closed when something has changed, such as what Asks reports.
	Changed() <-chan struct{}
	// Asks reports whether there is a question for the client.
	Asks() bool
}

// Over reports whether a channel that is closed at the end of something is closed.
func Over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Wait waits until pending has ended, or until ctx ends, for its cause. With questions it also waits for a question of it,
// for [ErrAsks].
func Wait(ctx context.Context, questions bool, pending Pending) error {
	for {
		open, changed := false, (<-chan struct{})(nil)
		if questions {
			changed = pending.Changed()
			open = pending.Asks()
		}
		if Over(pending.Done()) {
			return nil
		}
		if open && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrLimit)) {
			return ErrAsks
		}
		select {
		case <-pending.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// until returns the context of what the call waits for: ctx, or one that ends at its limit, too.
func (c *Call) until(ctx context.Context) context.Context { return cmp.Or(c.Until, ctx) }

// underMinute is how long a call of a host may take that gives up every call after a minute.
const underMinute = 50 * time.Second

// MayTake returns how long a call of a tool may take before it ends although its turn
// continues. 0 means no limit. Client is its name. A bare client is one that declares
// nothing and asks for no progress, as a program with an SDK and its time-out does, under any name.
func (t *Table) MayTake(tool, client string, bare bool) time.Duration {
	if !IsTurn(tool) && tool != waitTool.name || !t.Has(waitTool.name) {
		return 0
	}
	if t.options.Patience != 0 {
		return max(t.options.Patience, 0)
	}
	if bare || hosts.EndsCallsAfterMinute(client) {
		return underMinute
	}
	return 0
}
