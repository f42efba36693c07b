//go:build unix

package main

import (
	"context"
	"encoding/json"
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
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=hunter2")
	return c
}

// read returns the traces so far, and the last key.
func (c *collector) read() (traces, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.traces, c.key
}

// TestEndToEndTelemetry runs a turn with a command and reads its metrics, its traces and the
// log. They must not contain the prompt, the command, a path or a token.
func TestEndToEndTelemetry(t *testing.T) {
	collected := collect(t)
	// The command prints the collector's secret if it has it, and the model repeats the output.
	model := providertest.New(providertest.Call(providertest.Shell("c", "sh", "-c", "env | grep -c OTEL_EXPORTER_OTLP_HEADERS; true")), providertest.Say("an-answer"))
	t.Cleanup(model.Close)
	f := newFolders(t)
	s := startHTTP(t, f, model, "--log", "debug", "--log-format", "json", "-c", "http.metrics=127.0.0.1:0", "-c", "approval_policy=never")
	const trace, parent = "11111111111111111111111111111111", "2222222222222222"
	status, body, err := s.request("codex", `"name":"codex","arguments":{"prompt":"a-prompt","cwd":"`+f.cwd+`"}`, `"traceparent":"00-`+trace+`-`+parent+`-01",`)
	if err != nil || status != http.StatusOK || !strings.Contains(body, "an-answer") {
		t.Fatalf("the call: %d %s %v", status, body, err)
	}
	if got := model.Requests()[1].LastToolOutput(); !strings.Contains(got, "0") || strings.Contains(got, "1\n") {
		t.Errorf("the command's output: %q", got)
	}
	if got := s.get("/metrics"); got != http.StatusNotFound {
		t.Errorf("/metrics at the port of the server: %d", got)
	}
	_, rest, _ := strings.Cut(s.errors(), "serving metrics at ")
	url, _, _ := strings.Cut(rest, "\n")
	metrics := func(host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	if status, _ := metrics("evil.example"); status != http.StatusForbidden {
		t.Errorf("metrics for another host: %d", status)
	}
	read := awaitLines(t, func() string { _, text := metrics(""); return text },
		`codex_mcp_http_requests_total{method="tools/call",status="200"} 1`,
		`codex_mcp_turn_duration_seconds_count{outcome="completed"} 1`,
		`codex_mcp_model_request_duration_seconds_count{outcome="completed"} 2`,
		`codex_mcp_commands_total{outcome="completed"} 1`,
		"codex_mcp_turns_running 0",
		"codex_mcp_sessions 0",
		"codex_mcp_draining 0",
	)
	s.cmd.Process.Signal(endingSignals()[0])
	<-s.exited
	traces, key := collected.read()
	for _, part := range []string{`"traceId":"` + trace + `"`, `"parentSpanId":"` + parent + `"`, `"name":"tools/call codex"`, `"name":"turn"`, `"name":"model_request"`, `"name":"command"`} {
		if !strings.Contains(traces, part) {
			t.Errorf("the traces lack %s", part)
		}
	}
	if key != "hunter2" {
		t.Errorf("the collector got the key %q", key)
	}
	logged := false
	for line := range strings.Lines(s.errors()) {
		var l struct{ Msg, Principal, Method, Tool string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "request" && l.Principal == "local" && l.Method == "tools/call" && l.Tool == "codex" {
			logged = true
		}
	}
	if !logged {
		t.Errorf("the log lacks the call: %s", s.errors())
	}
	for name, text := range map[string]string{"metrics": read, "traces": traces, "log": s.errors()} {
		for _, secret := range []string{"a-prompt", "an-answer", "grep", s.token, "hunter2"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s have %q: %s", name, secret, text)
			}
		}
	}
}
