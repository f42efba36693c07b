package model

import (
	"net/http"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestRateLimits(t *testing.T) {
	for percent, want := range map[string]*protocol.RateLimitWindow{
		"12.5": {UsedPercent: 12.5, WindowMinutes: new(int64(300))}, "": nil, "most": nil, "NaN": nil, "+Inf": nil,
	} {
		h := http.Header{"X-Codex-Primary-Used-Percent": {percent}, "X-Codex-Primary-Window-Minutes": {"300"}}
		if diff := cmp.Diff(&protocol.RateLimits{Primary: want}, rateLimits(h)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", percent, diff)
		}
	}
}
