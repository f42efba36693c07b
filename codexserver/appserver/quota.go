package appserver

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// quotaLimit bounds a request for the account's limits, for which Codex asks a server.
const quotaLimit = 10 * time.Second

// RateLimits returns how much of the account's limits is used. Asking costs no tokens. It
// returns nil if the account has no limits, and an error for an account without ChatGPT.
func (e *Engine) RateLimits(ctx context.Context) (*protocol.RateLimits, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r apptypes.LimitsReply
	if err := c.call(ctx, quotaLimit, apptypes.CallAccountRateLimitsRead, nil, &r); err != nil {
		return nil, c.explain(err)
	}
	return limitsOf(&r.RateLimits, time.Now()), nil
}
