package appserver

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// quotaLimit bounds the question what the account has left, which Codex asks a server.
const quotaLimit = 10 * time.Second

// RateLimits asks Codex what the account has left, which costs no tokens. The limits
// are nil when it has none; an account without ChatGPT is an error.
func (e *Engine) RateLimits(ctx context.Context) (*protocol.RateLimits, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r struct {
		RateLimits rateLimits `json:"rateLimits"`
	}
	if err := c.call(ctx, quotaLimit, "account/rateLimits/read", nil, &r); err != nil {
		return nil, c.explain(err)
	}
	if r.RateLimits.Primary == nil && r.RateLimits.Secondary == nil {
		return nil, nil
	}
	now := time.Now()
	return &protocol.RateLimits{Primary: r.RateLimits.Primary.window(now), Secondary: r.RateLimits.Secondary.window(now)}, nil
}
