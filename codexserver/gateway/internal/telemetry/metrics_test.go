package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/google/go-cmp/cmp"
)

func newTelemetry(t *testing.T, env map[string]string) *telemetry.Telemetry {
	t.Helper()
	return newTelemetryWith(t, env, true)
}

func newTelemetryWith(t *testing.T, env map[string]string, users bool) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(telemetry.Options{Version: "1.2.3", Users: users, Getenv: func(name string) string { return env[name] }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// beginCall begins a call of ann.
func beginCall(tel *telemetry.Telemetry, traces ...map[string]string) *telemetry.Call {
	return tel.User("ann").Begin("ann", "codex", traces)
}

func tokens(input, output int64) protocol.TokenCount {
	return protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: input, OutputTokens: output}}}
}

// step records what an event means.
func step(o *telemetry.Turn, m protocol.EventMsg) {
	if s, needed := workerlink.StepOf(m); needed {
		o.Step(s)
	}
}

// work is a turn with two requests to the model, and a question and a command between them.
// Each takes a second.
func work(o *telemetry.Turn) {
	for _, step := range []func(){
		func() { step(o, protocol.TaskStarted{}) },
		func() { step(o, tokens(110, 7)); o.Asked(1, "command") },
		func() {
			o.Decided(1, elicit.Approved, approval.ByClient)
			step(o, protocol.ExecCommandBegin{CallID: "c", Command: []string{"a-command"}, Cwd: "/a/path"})
		},
		func() { step(o, protocol.ExecCommandEnd{CallID: "c", ExitCode: 3, Stdout: "an output"}) },
		func() { step(o, tokens(130, 9)); step(o, tokens(130, 9)) },
	} {
		step()
		<-time.After(time.Second)
	}
	step(o, protocol.TaskComplete{})
	o.End(nil)
}

// read returns the metrics.
func read(tel http.Handler) string {
	w := httptest.NewRecorder()
	tel.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

var unsteady = regexp.MustCompile(`go="go[^"]*"`)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := newTelemetry(t, nil)
		c := beginCall(tel)
		work(c.Turn("thread", protocol.TokenUsage{InputTokens: 100, OutputTokens: 5}))
		c.Turn("thread", protocol.TokenUsage{}).End(&engine.AbortError{Reason: protocol.AbortInterrupted})
		c.Turn("thread", protocol.TokenUsage{}).End(errors.New("failed"))
		c.Turn("thread", protocol.TokenUsage{}) // runs on
		for _, method := range []string{"tools/call", "tools/call", "", "initialize", "a-method-of-nobody\n"} {
			tel.User("ann").Report(method, http.StatusOK)
		}
		tel.User("").Report("", http.StatusUnauthorized)
		tel.User("ann").Report("ping", 2000)
		unknown := beginCall(tel).Turn("thread", protocol.TokenUsage{})
		unknown.Asked(7, "")
		unknown.Decided(7, "a-decision", "a-decider")
		unknown.Decided(7, "", "")
		unknown.Asked(8, "") // which is open at the end
		unknown.End(errors.New("failed"))
		got := unsteady.ReplaceAllString(read(tel), "…")
		lines := []string{}
		for line := range strings.Lines(got) {
			if strings.Contains(line, "codex_mcp_") && !strings.Contains(line, "_bucket{") && !strings.HasPrefix(line, "# HELP") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if diff := cmp.Diff(strings.Split(strings.TrimSpace(wantMetrics), "\n"), lines); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		for _, line := range []string{
			`codex_mcp_model_request_duration_seconds_bucket{outcome="completed",principal="ann",le="0.5"} 0`,
			`codex_mcp_model_request_duration_seconds_bucket{outcome="completed",principal="ann",le="1"} 2`,
			`codex_mcp_model_request_duration_seconds_bucket{outcome="completed",principal="ann",le="+Inf"} 2`,
			"go_goroutines ", "process_start_time_seconds ",
		} {
			if !strings.Contains(got, "\n"+line) {
				t.Errorf("lacks %s", line)
			}
		}
	})
}

// pool is a pool with two workers.
type pool struct{ draining bool }

func (p *pool) Draining() bool { return p.draining }

func (p *pool) Loads(context.Context) map[string]workerlink.Load {
	return map[string]workerlink.Load{"ann": {Requests: 3, Sessions: 2, Draining: p.draining}, "bob": {Requests: 1, Sessions: 4}}
}

// TestLoads checks the metrics of a pool.
func TestLoads(t *testing.T) {
	tel := newTelemetry(t, nil)
	if got := read(tel); strings.Contains(got, "codex_mcp_draining") {
		t.Errorf("without a pool: %s", got)
	}
	p := &pool{}
	tel.Watch(p)
	for _, draining := range []string{"0", "1"} {
		got := read(tel)
		for _, line := range []string{
			"codex_mcp_draining " + draining, `codex_mcp_draining{principal="ann"} ` + draining,
			`codex_mcp_http_requests_open{principal="ann"} 3`, `codex_mcp_sessions{principal="ann"} 2`,
		} {
			if !strings.Contains(got, "\n"+line+"\n") {
				t.Errorf("lacks %s: %s", line, got)
			}
		}
		p.draining = true
	}
}

// TestUsersTogether checks that users have no series of their own unless the operator wants them.
func TestUsersTogether(t *testing.T) {
	tel := newTelemetryWith(t, nil, false)
	tel.Watch(&pool{})
	for _, user := range []string{"ann", "bob"} {
		tel.User(user).Report("ping", 200)
		tel.User(user).Begin(user, "codex", nil).Turn("t", protocol.TokenUsage{}).End(nil)
	}
	got := read(tel)
	for _, line := range []string{
		"codex_mcp_http_requests_open 4", "codex_mcp_sessions 6", "codex_mcp_draining 0", `codex_mcp_http_requests_total{method="ping",status="200"} 2`,
		`codex_mcp_turn_duration_seconds_count{outcome="completed"} 2`, "codex_mcp_turns_running 0",
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("lacks %s: %s", line, got)
		}
	}
	if strings.Contains(got, "principal") {
		t.Errorf("a user has series: %s", got)
	}
}

const wantMetrics = `
# TYPE codex_mcp_build_info gauge
codex_mcp_build_info{…,version="1.2.3"} 1
# TYPE codex_mcp_commands_total counter
codex_mcp_commands_total{outcome="failed",principal="ann"} 1
# TYPE codex_mcp_http_requests_total counter
codex_mcp_http_requests_total{method="none",status="401"} 1
codex_mcp_http_requests_total{method="initialize",principal="ann",status="200"} 1
codex_mcp_http_requests_total{method="none",principal="ann",status="200"} 1
codex_mcp_http_requests_total{method="other",principal="ann",status="200"} 1
codex_mcp_http_requests_total{method="ping",principal="ann",status="other"} 1
codex_mcp_http_requests_total{method="tools/call",principal="ann",status="200"} 2
# TYPE codex_mcp_model_request_duration_seconds histogram
codex_mcp_model_request_duration_seconds_sum{outcome="completed",principal="ann"} 2
codex_mcp_model_request_duration_seconds_count{outcome="completed",principal="ann"} 2
# TYPE codex_mcp_questions_open gauge
codex_mcp_questions_open{principal="ann"} 0
# TYPE codex_mcp_questions_total counter
codex_mcp_questions_total{by="client",decision="approved",principal="ann"} 1
codex_mcp_questions_total{by="other",decision="other",principal="ann"} 1
# TYPE codex_mcp_tokens_total counter
codex_mcp_tokens_total{kind="input",principal="ann"} 30
codex_mcp_tokens_total{kind="output",principal="ann"} 4
# TYPE codex_mcp_turn_duration_seconds histogram
codex_mcp_turn_duration_seconds_sum{outcome="aborted",principal="ann"} 0
codex_mcp_turn_duration_seconds_count{outcome="aborted",principal="ann"} 1
codex_mcp_turn_duration_seconds_sum{outcome="completed",principal="ann"} 5
codex_mcp_turn_duration_seconds_count{outcome="completed",principal="ann"} 1
codex_mcp_turn_duration_seconds_sum{outcome="failed",principal="ann"} 0
codex_mcp_turn_duration_seconds_count{outcome="failed",principal="ann"} 2
# TYPE codex_mcp_turns_running gauge
codex_mcp_turns_running{principal="ann"} 1
`

// TestModelRequests checks the durations of requests to the model. Each step takes a second.
func TestModelRequests(t *testing.T) {
	begin, end := protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}
	for _, tt := range []struct {
		name   string
		events []protocol.EventMsg
		want   string // of each outcome: the number and the seconds
	}{
		{"an answer", []protocol.EventMsg{protocol.TaskStarted{}, tokens(1, 1), protocol.TaskComplete{}}, "completed 1 1"},
		{"no count of tokens", []protocol.EventMsg{protocol.TaskStarted{}, protocol.TaskComplete{}}, "completed 1 1"},
		{"a count that is of a limit", []protocol.EventMsg{protocol.TaskStarted{}, protocol.TokenCount{}, tokens(1, 1), protocol.TaskComplete{}}, "completed 1 2"},
		{"a command", []protocol.EventMsg{protocol.TaskStarted{}, tokens(1, 1), begin, end, tokens(2, 2), protocol.TaskComplete{}}, "completed 2 2"},
		{"a command while the model answers", []protocol.EventMsg{protocol.TaskStarted{}, begin, tokens(1, 1), end, tokens(2, 2), protocol.TaskComplete{}}, "completed 2 3"},
		{"a tool without events", []protocol.EventMsg{protocol.TaskStarted{}, tokens(1, 1), tokens(2, 2), protocol.TaskComplete{}}, "completed 2 2"},
		{"a stream that breaks", []protocol.EventMsg{protocol.TaskStarted{}, protocol.StreamError{}, tokens(1, 1), protocol.TaskComplete{}}, "completed 1 1, failed 1 1"},
		{"an error", []protocol.EventMsg{protocol.TaskStarted{}, protocol.Error{}, protocol.TaskComplete{}}, "failed 1 1"},
		{"an interrupt", []protocol.EventMsg{protocol.TaskStarted{}, protocol.TurnAborted{}}, "aborted 1 1"},
		{"two commands", []protocol.EventMsg{protocol.TaskStarted{}, tokens(1, 1), begin, end, begin, end, tokens(2, 2), protocol.TaskComplete{}}, "completed 2 2"},
		{"an interrupted command", []protocol.EventMsg{protocol.TaskStarted{}, tokens(1, 1), begin, protocol.TurnAborted{}}, "completed 1 1"},
		{"nothing", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tel := newTelemetry(t, nil)
				o := beginCall(tel).Turn("thread", protocol.TokenUsage{})
				for _, m := range tt.events {
					step(o, m)
					<-time.After(time.Second)
				}
				o.End(nil)
				var got []string
				for _, outcome := range []string{"completed", "failed", "aborted"} {
					var values []string
					for _, part := range []string{"count", "sum"} {
						if _, rest, ok := strings.Cut(read(tel), "model_request_duration_seconds_"+part+`{outcome="`+outcome+`",principal="ann"} `); ok {
							value, _, _ := strings.Cut(rest, "\n")
							values = append(values, value)
						}
					}
					if len(values) > 0 {
						got = append(got, outcome+" "+strings.Join(values, " "))
					}
				}
				if all := strings.Join(got, ", "); all != tt.want {
					t.Errorf("requests: %q, want %q", all, tt.want)
				}
			})
		})
	}
}
