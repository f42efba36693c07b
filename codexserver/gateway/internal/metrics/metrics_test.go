package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
)

// TestMetrics counts once of each, and looks at what Prometheus gets.
func TestMetrics(t *testing.T) {
	m := metrics.New()
	for _, status := range []int{200, 200, 503, 0, 777} {
		m.Answered(status)
	}
	m.Started(nil)
	m.Started(errors.New("no program"))
	m.Lost()
	m.Watch(func(context.Context) metrics.Figures {
		return metrics.Figures{Requests: 1, Sessions: 2, Turns: 3, Workers: 4, Leases: 5, Draining: true}
	})
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	got := "\n" + w.Body.String()
	for _, want := range []string{
		`codex_mcp_http_requests_total{status="200"} 2`, `codex_mcp_http_requests_total{status="503"} 1`, `codex_mcp_http_requests_total{status="other"} 2`,
		"codex_mcp_worker_starts_total 1", "codex_mcp_worker_failures_total 1", "codex_mcp_leases_lost_total 1", "codex_mcp_http_requests_open 1", "codex_mcp_sessions 2",
		"codex_mcp_turns_running 3", "codex_mcp_workers 4", "codex_mcp_leases 5", "codex_mcp_draining 1",
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Count(got, "# HELP codex_mcp_") != 10 {
		t.Errorf("there are not ten:\n%s", got)
	}
}
