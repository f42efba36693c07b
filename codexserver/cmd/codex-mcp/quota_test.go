package main

import (
	"context"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestQuota(t *testing.T) {
	window := func(percent float64, minutes, resets int64) *protocol.RateLimitWindow {
		w := &protocol.RateLimitWindow{UsedPercent: percent}
		if minutes > 0 {
			w.WindowMinutes = &minutes
		}
		if resets > 0 {
			w.ResetsInSeconds = &resets
		}
		return w
	}
	for want, limits := range map[string]*protocol.RateLimits{
		"12.5% used of 5h0m0s, resets in 1h0m0s; 3% used of 168h0m0s": {Primary: window(12.5, 300, 3600), Secondary: window(3, 10080, 0)},
		"100% used, resets in 1m0s":                                   {Secondary: window(100, 0, 60)},
		"no limits were reported":                                     nil,
	} {
		q := quotaOf(t.Context(), func(context.Context) (*protocol.RateLimits, error) { return limits, nil })
		must.Equal(t, "words", want, q.words+q.Unknown)
	}
}
