package native

import (
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// newestRollouts is how many conversations are searched for rate limits.
const newestRollouts = 20

// RateLimits returns the rate limits that a provider reported last, and when. It reads
// them from the newest conversations of the home, whatever their provider, and sends no
// request. The limits are nil when these conversations have none.
func (e *Engine) RateLimits(ctx context.Context) (limits *protocol.RateLimits, reported time.Time, err error) {
	paths, err := rollout.Paths(ctx, e.options.CodexHome)
	if err != nil {
		return nil, reported, err
	}
	for _, path := range paths[:min(len(paths), newestRollouts)] {
		l, at, err := rollout.RateLimits(path)
		if err != nil {
			e.options.Logger.Debug("a rollout cannot be searched for rate limits", "path", path, "error", err)
			continue
		}
		if l != nil && at.After(reported) {
			limits, reported = l, at
		}
	}
	return limits, reported, nil
}
