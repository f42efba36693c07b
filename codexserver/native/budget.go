package native

import (
	"context"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// budget is what a turn may use of time, of requests to the model and of tokens, and what it has used.
type budget struct {
	limits   Limits // of every turn
	most     int64  // tokens of this turn; 0 means no limit of its own
	begun    time.Time
	requests int
	tokens   int64
}

// budgetOf returns the budget of a turn, and its context. A turn that goes on with the last one has the budget of both.
func (c *conversation) budgetOf(ctx context.Context, in protocol.TurnInput) (*budget, context.Context, context.CancelFunc) {
	if !in.Again || c.budget == nil {
		c.budget = &budget{limits: c.engine.options.Limits, begun: time.Now()}
	}
	b := c.budget
	b.most = 0
	if in.MaxTokens > 0 {
		b.most = b.tokens + in.MaxTokens
	}
	limit := b.limits.WallTime
	if limit <= 0 {
		return b, ctx, func() {}
	}
	ctx, cancel := context.WithDeadlineCause(ctx, b.begun.Add(limit), &limitError{what: fmt.Sprintf("it took longer than %v", limit)})
	return b, ctx, cancel
}

// limitError ends a turn that reached one of its limits.
type limitError struct{ what string }

func (e *limitError) Error() string { return "the turn was stopped: " + e.what }

// request counts a request and returns an error when a limit does not allow it.
func (b *budget) request() error {
	if b.requests++; b.limits.ModelRequests > 0 && b.requests > b.limits.ModelRequests {
		return &limitError{fmt.Sprintf("it needs more than %d requests to the model", b.limits.ModelRequests)}
	}
	return b.spent()
}

// spent returns an error when the turn has used all its tokens.
func (b *budget) spent() error {
	for _, limit := range []int64{b.limits.Tokens, b.most} {
		if limit > 0 && b.tokens >= limit {
			return &limitError{fmt.Sprintf("it used %d of %d tokens", b.tokens, limit)}
		}
	}
	return nil
}
