package model

import (
	"math"
	"net/http"
	"strconv"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// rateLimits reads the x-codex headers of a response. A window without a
// percentage is nil.
func rateLimits(h http.Header) *protocol.RateLimits {
	return &protocol.RateLimits{
		Primary:   rateLimitWindow(h, "X-Codex-Primary"),
		Secondary: rateLimitWindow(h, "X-Codex-Secondary"),
	}
}

func rateLimitWindow(h http.Header, prefix string) *protocol.RateLimitWindow {
	used, err := strconv.ParseFloat(h.Get(prefix+"-Used-Percent"), 64)
	if err != nil || math.IsNaN(used) || math.IsInf(used, 0) {
		return nil
	}
	return &protocol.RateLimitWindow{
		UsedPercent:     used,
		WindowMinutes:   headerInt(h, prefix+"-Window-Minutes"),
		ResetsInSeconds: headerInt(h, prefix+"-Reset-After-Seconds"),
	}
}

func headerInt(h http.Header, name string) *int64 {
	n, err := strconv.ParseInt(h.Get(name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
