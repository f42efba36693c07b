package native

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// newestRollouts is how many conversations are searched for limits.
const newestRollouts = 20

// RateLimits returns the account's limits in the last headers of a provider, and when
// they came. It reads them from the newest conversations of the home, of any provider,
// and sends no request. The limits are nil when nothing is known.
func (e *Engine) RateLimits(ctx context.Context) (limits *protocol.RateLimits, told time.Time, err error) {
	paths, err := rollout.Paths(ctx, e.home)
	if err != nil {
		return nil, told, err
	}
	for _, path := range paths[:min(len(paths), newestRollouts)] {
		if ctx.Err() != nil {
			return nil, told, context.Cause(ctx)
		}
		l, at, err := rollout.RateLimits(path)
		if err != nil {
			e.log.Debug("a rollout is not searched for limits", "path", path, "error", err)
			continue
		}
		if l != nil && at.After(told) {
			limits, told = l, at
		}
	}
	return limits, told, nil
}
