package workers

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/google/go-cmp/cmp"
)

// observed returns a pool with telemetry, and a function that returns the samples that are
// not 0, without the buckets and the gauges of the process.
func observed(t *testing.T) (p *Pool, samples func() []string) {
	t.Helper()
	tel, err := telemetry.New(telemetry.Options{Users: true, Getenv: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p = newPool(Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}}}, Telemetry: tel, Logger: slog.New(slog.DiscardHandler)})
	return p, func() (all []string) {
		w := httptest.NewRecorder()
		tel.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(w.Body.String()) {
			name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "{")
			name = strings.TrimPrefix(name, "codex_mcp_")
			if strings.Contains(rest, `principal="ann"`) && !strings.HasSuffix(name, "_bucket") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(rest, " 0") {
				all = append(all, name+"{"+strings.NewReplacer(`,principal="ann"`, "", `principal="ann"`, "").Replace(rest))
			}
		}
		return all
	}
}

// run replays lines.
func (r *replay) run(t *testing.T, lines ...string) {
	t.Helper()
	w := newWorker(slog.New(slog.DiscardHandler), challenger{})
	w.kill = func() error { t.Error("the worker was killed"); return nil }
	var text bytes.Buffer
	for _, line := range lines {
		fmt.Fprintf(&text, "{\"observed\":%s}\n", line)
	}
	w.readStatus(statuses(&text), r)
}

const (
	replayCall     = `{"kind":"begin","call":1,"principal":"ann","tool":"codex"}`
	replayTurn     = `{"kind":"turn","call":1,"turn":2,"thread":"t"}`
	replayAsked    = `{"kind":"asked","turn":2,"question":3,"asks":"command"}`
	replayTurnDone = `{"kind":"turn-ended","turn":2}`
)

// TestReplay checks the metrics of what workers report. What is open when a worker ends has
// failed.
func TestReplay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"a turn", []string{
			replayCall, replayTurn,
			`{"kind":"step","turn":2,"step":{"what":"started"}}`,
			`{"kind":"step","turn":2,"step":{"what":"runs","call":"c"}}`,
			`{"kind":"step","turn":2,"step":{"what":"ran","call":"c","exit":1}}`,
			replayAsked, `{"kind":"decided","turn":2,"question":3,"decision":"denied","by":"client"}`,
			`{"kind":"step","turn":2,"step":{"what":"counted","used":{"input_tokens":5}}}`,
			`{"kind":"end","call":1}`, replayTurnDone,
		}, []string{
			`commands_total{outcome="failed"} 1`, `model_request_duration_seconds_count{outcome="completed"} 1`,
			`questions_total{by="client",decision="denied"} 1`, `tokens_total{kind="input"} 5`, `turn_duration_seconds_count{outcome="completed"} 1`,
		}},
		{"an aborted turn", []string{replayCall, replayTurn, `{"kind":"turn-ended","turn":2,"aborted":true}`}, []string{`turn_duration_seconds_count{outcome="aborted"} 1`}},
		{"a worker that is killed", []string{replayCall, replayTurn, replayAsked}, []string{`turn_duration_seconds_count{outcome="failed"} 1`}},
		{"numbers that do not fit", []string{
			replayTurn, replayAsked, replayTurnDone, `{"kind":"end","call":1}`, replayCall, replayCall, replayTurn, replayTurn,
			`{"kind":"decided","turn":2,"question":3}`, replayAsked, replayAsked, replayTurnDone, replayTurnDone, `{"kind":"what"}`, `{}`,
		}, []string{`turn_duration_seconds_count{outcome="completed"} 1`}},
		{"broken steps", []string{
			replayCall, replayTurn, `{"kind":"step","turn":2}`, `{"kind":"step","turn":2,"step":{"what":"unheard-of"}}`, `{"kind":"step","turn":2,"step":{"what":"ran","call":"unheard-of"}}`,
			`{"kind":"asked","turn":2,"question":3}`, replayTurnDone,
		}, []string{`commands_total{outcome="completed"} 1`, `turn_duration_seconds_count{outcome="completed"} 1`}},
		{"labels that nobody has", []string{
			replayCall, replayTurn, replayAsked, `{"kind":"decided","turn":2,"question":3,"decision":"\u202e","by":"x"}`,
			replayTurnDone,
		}, []string{
			`questions_total{by="other",decision="other"} 1`, `turn_duration_seconds_count{outcome="completed"} 1`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, samples := observed(t)
			p.replay("ann").run(t, tt.lines...)
			if diff := cmp.Diff(tt.want, samples()); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCounted checks which requests count as those of a user: those that the worker answered with a status that
// is passed to clients, also if the answer breaks off.
func TestCounted(t *testing.T) {
	for head, want := range map[string][]string{
		"200 OK\r\nCodex-Mcp-Method: tools/call\r\nContent-Length: 0":    {`http_requests_total{method="tools/call",status="200"} 1`},
		"400 Bad Request\r\nCodex-Mcp-Method: \r\nContent-Length: 0":     {`http_requests_total{method="none",status="400"} 1`},
		"404 Not Found\r\nCodex-Mcp-Method: a-word\r\nContent-Length: 0": {`http_requests_total{method="other",status="404"} 1`},
		"200 OK\r\nCodex-Mcp-Method: ping\r\nContent-Length: 9":          {`http_requests_total{method="ping",status="200"} 1`},
		"302 Found\r\nCodex-Mcp-Method: ping\r\nContent-Length: 0":       nil,
	} {
		t.Run(head, func(t *testing.T) {
			socket := listen(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 "+head+"\r\nConnection: close\r\n\r\n")
			})
			p, samples := observed(t)
			s := frontOf(t, p, socket)
			answer, err := http.Post(s.URL, "application/json", strings.NewReader("{}"))
			if err == nil {
				answer.Body.Close()
				if got := answer.Header.Get(workerlink.MethodHeader); got != "" {
					t.Errorf("the client is told the method %q", got)
				}
			}
			s.Close() // waits for the end of the request
			if diff := cmp.Diff(want, samples()); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplayBounds checks that a worker that reports without end costs the gateway a bounded
// amount of memory.
func TestReplayBounds(t *testing.T) {
	p, samples := observed(t)
	r := p.replay("ann")
	long := strings.Repeat("x", 10_000)
	for n := uint64(1); n <= 2*maxReplayed; n++ {
		r.observe(&workerlink.Observation{Kind: workerlink.KindBegin, Call: n, Tool: long})
		r.observe(&workerlink.Observation{Kind: workerlink.KindTurnBegin, Call: n, Turn: n, Thread: "t"})
	}
	for n := range uint64(512) {
		for _, what := range []workerlink.What{workerlink.Runs, workerlink.Calls} {
			r.observe(&workerlink.Observation{Kind: workerlink.KindStep, Turn: 1, Step: workerlink.Step{What: what, Call: fmt.Sprint(long[:n%2*200], n)}})
		}
		r.observe(&workerlink.Observation{Kind: workerlink.KindAsked, Turn: 1, Question: n + 1, Asks: long})
	}
	if len(r.calls) != maxReplayed || len(r.turns) != maxReplayed || !slices.Contains(samples(), "questions_open{} 256") {
		t.Errorf("%d calls, %d turns, %q", len(r.calls), len(r.turns), samples())
	}
	r.observe(&workerlink.Observation{Kind: workerlink.KindBegin, Call: 1 << 40})
	r.observe(&workerlink.Observation{Kind: workerlink.KindTurnBegin, Call: 2, Turn: 1 << 40, Thread: long})
	if !slices.Contains(samples(), fmt.Sprintf("turns_running{} %d", maxReplayed)) {
		t.Errorf("samples: %q", samples())
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > 128<<20 {
		t.Errorf("%d bytes are in use", memory.HeapAlloc)
	}
	r.end()
	if got := samples(); slices.ContainsFunc(got, func(s string) bool {
		return strings.HasPrefix(s, "turns_running") || strings.HasPrefix(s, "questions_open")
	}) {
		t.Errorf("after the end: %q", got)
	}
}
