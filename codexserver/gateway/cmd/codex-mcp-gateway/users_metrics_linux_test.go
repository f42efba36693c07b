package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// awaitLines reads metrics until they have each line once, and returns them. It must wait,
// because a request is counted after its answer.
func awaitLines(t *testing.T, read func() string, lines ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		text := read()
		missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Count(text, line+"\n") == 1 })
		if len(missing) == 0 {
			return text
		}
		select {
		case <-ctx.Done():
			t.Errorf("the metrics do not have once %q", missing)
			return text
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// collector is a collector of traces that keeps the requests it receives.
type collector struct {
	mu          sync.Mutex
	traces, key string
}

// collect starts a collector, and sets the environment variables with its address and its
// secret for the servers of the test.
func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.traces, c.key = c.traces+string(body), r.Header.Get("X-Key")
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=hunter2")
	return c
}

// read returns the traces so far, and the last key.
func (c *collector) read() (traces, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.traces, c.key
}

// TestEndToEndUsersTelemetry runs a turn with a command for each of two users, and reads the
// metrics of both and the trace of one. Commands must not get the collector's secret.
func TestEndToEndUsersTelemetry(t *testing.T) {
	collected := collect(t)
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("an-answer")
		}
		return providertest.Call(providertest.Shell("c", "sh", "-c", "env | grep OTEL_EXPORTER_OTLP_; true"))
	}})
	t.Cleanup(model.Close)
	u := startUsers(t, model, "[http]\nmetrics = \"127.0.0.1:0\"\nmetrics_users = true\n", "-c", "approval_policy=never", "--log", "info", "--log-format", "json")
	_, rest, _ := strings.Cut(u.errors(), "serving metrics at ")
	url, _, _ := strings.Cut(rest, "\n")
	metrics := func() string {
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("the metrics: %s %v", answer.Status, err)
		}
		return string(b)
	}
	if got := metrics(); strings.Contains(got, "principal=") || !strings.Contains(got, "\ncodex_mcp_build_info{") || !strings.Contains(got, "\ncodex_mcp_draining 0\n") {
		t.Errorf("the metrics before any worker: %s", got)
	}
	if got := u.get("/metrics"); got != http.StatusNotFound {
		t.Errorf("/metrics at the port of the server: %d", got)
	}
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Host = "evil.example"
	answer, err := http.DefaultClient.Do(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
		t.Errorf("metrics for another host: %s", answer.Status)
	}
	const trace, parent = "11111111111111111111111111111111", "2222222222222222"
	for _, name := range []string{"ann", "bob"} {
		meta := ""
		if name == "ann" {
			meta = `"traceparent":"00-` + trace + `-` + parent + `-01",`
		}
		status, body, err := u.as(name).request("codex", `"name":"codex","arguments":{"prompt":"a-prompt"}`, meta)
		if err != nil || status != http.StatusOK || !strings.Contains(body, "an-answer") {
			t.Fatalf("the call of %s: %d %s %v", name, status, body, err)
		}
	}
	for i, r := range model.Requests() {
		if got := r.LastToolOutput(); strings.Contains(got, "hunter2") || i%2 == 1 && !strings.Contains(got, "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("the command's output: %q", got)
		}
	}
	if status, _, err := u.as("nobody").call("hello"); status != http.StatusUnauthorized || err != nil {
		t.Errorf("without a token: %d %v", status, err)
	}
	read := awaitLines(t, metrics,
		`codex_mcp_http_requests_total{method="none",status="401"} 1`,
		`codex_mcp_http_requests_total{method="tools/call",principal="ann",status="200"} 1`,
		`codex_mcp_http_requests_total{method="tools/call",principal="bob",status="200"} 1`,
		`codex_mcp_turn_duration_seconds_count{outcome="completed",principal="ann"} 1`,
		`codex_mcp_turn_duration_seconds_count{outcome="completed",principal="bob"} 1`,
		`codex_mcp_commands_total{outcome="completed",principal="ann"} 1`,
		`codex_mcp_model_request_duration_seconds_count{outcome="completed",principal="ann"} 2`,
		`codex_mcp_turns_running{principal="ann"} 0`,
		`codex_mcp_draining{principal="bob"} 0`,
		`codex_mcp_sessions{principal="ann"} 0`,
		"# TYPE codex_mcp_turns_running gauge",
	)
	u.cmd.Process.Signal(endingSignals()[0])
	<-u.exited
	logged := 0
	for line := range strings.Lines(u.errors()) {
		if strings.Contains(line, `"msg":"request"`) && strings.Contains(line, `"tool":"codex"`) && strings.Count(line, `"principal":`) == 1 {
			logged++
		}
	}
	if logged != 2 {
		t.Errorf("%d lines about the calls of both, want 2: %s", logged, u.errors())
	}
	traces, key := collected.read()
	for _, part := range []string{`"traceId":"` + trace + `"`, `"parentSpanId":"` + parent + `"`, `"name":"tools/call codex"`, `"name":"turn"`, `"name":"model_request"`, `"name":"command"`, `{"stringValue":"bob"}`} {
		if !strings.Contains(traces, part) {
			t.Errorf("the traces lack %s", part)
		}
	}
	if key != "hunter2" {
		t.Errorf("the collector got the key %q", key)
	}
	for name, text := range map[string]string{"metrics": read, "traces": traces, "log": u.errors()} {
		for _, secret := range []string{"a-prompt", "an-answer", "grep", u.tokens["ann"], "hunter2"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s have %q: %s", name, secret, text)
			}
		}
	}
}
