package protocol_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRateLimits has windows of an account, as a person reads them.
func TestRateLimits(t *testing.T) {
	for want, limits := range map[string]protocol.RateLimits{
		"12.5% used of 5h0m0s, resets in 1h0m0s; 3% used of 168h0m0s": {
			Primary:   &protocol.RateLimitWindow{UsedPercent: 12.5, WindowMinutes: new(int64(300)), ResetsInSeconds: new(int64(3600))},
			Secondary: &protocol.RateLimitWindow{UsedPercent: 3, WindowMinutes: new(int64(10080))},
		},
		"100% used, resets in 1m0s": {Secondary: &protocol.RateLimitWindow{UsedPercent: 100, ResetsInSeconds: new(int64(60))}},
	} {
		must.Equal(t, "words", want, limits.Words())
	}
}
