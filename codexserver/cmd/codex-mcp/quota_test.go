package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	synctest.Test(t, func(t *testing.T) { // whose clock begins in the year 2000
		for _, tt := range []struct {
			limits protocol.RateLimits
			ago    time.Duration // 0 is now
			want   string
		}{
			{protocol.RateLimits{Primary: window(12.5, 300, 3600), Secondary: window(3, 10080, 0)}, 0, "12.5% used of 5h0m0s, resets in 1h0m0s; 3% used of 168h0m0s"},
			{protocol.RateLimits{Primary: window(12.5, 300, 3600)}, time.Minute, "12.5% used of 5h0m0s, resets in 59m0s (reported 1999-12-31T23:59:00Z)"},
			{protocol.RateLimits{Primary: window(12.5, 300, 60), Secondary: window(3, 0, 0)}, time.Minute, "3% used (reported 1999-12-31T23:59:00Z)"},
			{protocol.RateLimits{Primary: window(12.5, 300, 60)}, time.Hour, "unknown: the limits that were reported last have been reset since"},
			{protocol.RateLimits{Secondary: window(100, 0, 60)}, 0, "100% used, resets in 1m0s"},
		} {
			q := quotaOf(t.Context(), func(context.Context) (*protocol.RateLimits, time.Time, error) {
				if tt.ago > 0 {
					return &tt.limits, time.Now().Add(-tt.ago), nil
				}
				return &tt.limits, time.Time{}, nil
			})
			got := q.words
			if q.Unknown != "" {
				got = "unknown: " + q.Unknown
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		}
	})
}
