package workerlink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// toolCall returns a request of ann with these members in its params.
func toolCall(params string) *codexserver.Request {
	return &codexserver.Request{Principal: "ann", RPC: &jsonrpc.Request{Method: "tools/call", Params: []byte(`{` + params + `}`)}}
}

// TestObserver reports a call with a turn. No line has a prompt, a command, a path or an
// answer.
func TestObserver(t *testing.T) {
	var sent bytes.Buffer
	o := (&Link{Settings: Settings{Measured: true, Traced: true}, status: &sent}).Observer()
	for _, method := range []string{"tools/list", "tasks/get"} {
		if o.Begin(t.Context(), &codexserver.Request{RPC: &jsonrpc.Request{Method: method}}) != nil {
			t.Errorf("%s is observed", method)
		}
	}
	if o.Begin(t.Context(), &codexserver.Request{}) != nil {
		t.Error("a call of the program is observed")
	}
	c := o.Begin(t.Context(), toolCall(`"name":"codex","arguments":{"prompt":"SECRET"},"_meta":{"traceparent":"00-1-2-01"}`))
	turn := c.Turn("thread", protocol.TokenUsage{InputTokens: 1})
	r := &approval.Request{Event: protocol.ExecApprovalRequest{CallID: "c", Command: []string{"SECRET"}, Cwd: "/SECRET"}}
	for _, m := range []protocol.EventMsg{
		protocol.TaskStarted{}, protocol.AgentMessage{Message: "SECRET"}, protocol.TokenCount{},
		protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: 7}}},
		protocol.StreamError{Message: "SECRET"}, protocol.Error{Message: "SECRET"},
		protocol.ExecCommandBegin{CallID: "c", Command: []string{"SECRET"}, Cwd: "/SECRET"},
		protocol.ExecCommandEnd{CallID: "c", Stdout: "SECRET", AggregatedOutput: "SECRET", ExitCode: 3},
		protocol.MCPToolCallBegin{CallID: strings.Repeat("d", 1000)}, protocol.MCPToolCallEnd{CallID: "d\nd\xff"},
		protocol.PatchApplyBegin{CallID: "e"}, protocol.PatchApplyEnd{CallID: "e", Stdout: "SECRET"},
		protocol.TurnAborted{Reason: protocol.AbortInterrupted}, protocol.TaskComplete{LastAgentMessage: new("SECRET")},
	} {
		turn.Event(m)
	}
	turn.Asked(r)
	turn.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Detail: "SECRET"}, By: "desk"})
	c.End(errors.New("SECRET"))
	turn.End(&engine.AbortError{Cause: errors.New("SECRET")})
	if strings.Contains(sent.String(), "SECRET") {
		t.Errorf("sent: %s", sent.String())
	}
	var got []string
	for line := range strings.Lines(sent.String()) {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(line, `{"observed":{"kind":`), "}}\n"))
	}
	for i, want := range []string{
		`"begin","call":1,"tool":"codex","traces":[{"traceparent":"00-1-2-01","tracestate":""}]`,
		`"turn","call":1,"turn":2,"thread":"thread","used":{"input_tokens":1,`,
		`"step","turn":2,"step":{"what":"started"`,
		`"step","turn":2,"step":{"what":"counted","used":{"input_tokens":7,`,
		`"step","turn":2,"step":{"what":"retried"`,
		`"step","turn":2,"step":{"what":"failed"`,
		`"step","turn":2,"step":{"what":"runs","call":"c"`,
		`"step","turn":2,"step":{"what":"ran","call":"c","exit":3`,
		`"step","turn":2,"step":{"what":"calls","call":"` + strings.Repeat("d", 128) + `"`,
		`"step","turn":2,"step":{"what":"called","call":"d d?"`,
		`"step","turn":2,"step":{"what":"calls","call":"e"`,
		`"step","turn":2,"step":{"what":"called","call":"e"`,
		`"step","turn":2,"step":{"what":"aborted"`,
		`"step","turn":2,"step":{"what":"completed"`,
		`"asked","turn":2,"question":3,"asks":"command"`,
		`"decided","turn":2,"question":3,"decision":"denied","by":"desk"`,
		`"end","call":1,"failed":true`,
		`"turn-ended","turn":2,"aborted":true`,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("line %d is not %s: %q", i, want, got[min(i, len(got)):])
		}
	}
	if len(got) != 18 {
		t.Errorf("%d lines", len(got))
	}
}

// TestEnds checks how a turn's end is reported.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, `{"kind":"turn-ended","turn":2}`},
		{errors.New("SECRET"), `{"kind":"turn-ended","turn":2,"failed":true}`},
		{fmt.Errorf("wrapped: %w", &engine.AbortError{}), `{"kind":"turn-ended","turn":2,"aborted":true}`},
	} {
		var sent bytes.Buffer
		c := (&Link{status: &sent}).Observer().Begin(t.Context(), toolCall(`"name":"codex","arguments":{}`))
		turn := c.Turn("thread", protocol.TokenUsage{})
		sent.Reset()
		if turn.End(tt.err); !strings.Contains(sent.String(), tt.want) {
			t.Errorf("%v: %s", tt.err, &sent)
		}
	}
}

// TestTraces checks which traces a call names, those of the headers before that of _meta.
func TestTraces(t *testing.T) {
	one, two := map[string]string{"traceparent": "p1", "tracestate": "s1"}, map[string]string{"traceparent": "p2", "tracestate": "s2"}
	for _, tt := range []struct {
		name           string
		untraced       bool
		header, params string
		tool           string
		want           []map[string]string
	}{
		{"none", false, "", `"name":"codex"`, "codex", nil},
		{"headers", false, "p1", `"name":"codex"`, "codex", []map[string]string{one}},
		{"_meta", false, "", `"name":"codex","_meta":{"traceparent":"p2","tracestate":"s2"}`, "codex", []map[string]string{two}},
		{"both", false, "p1", `"name":"codex","_meta":{"traceparent":"p2","tracestate":"s2"}`, "codex", []map[string]string{one, two}},
		{"another type in _meta", false, "p1", `"name":"codex","_meta":{"traceparent":1}`, "", []map[string]string{one}},
		{"a long one", false, strings.Repeat("p", 4096), `"name":"codex"`, "codex", []map[string]string{{"traceparent": strings.Repeat("p", 4096), "tracestate": "s1"}}},
		{"one that is too long", false, strings.Repeat("p", 4097), `"name":"codex"`, "codex", nil},
		{"a long state", false, "", `"name":"codex","_meta":{"traceparent":"p","tracestate":"` + strings.Repeat("s", 4097) + `"}`, "codex", nil},
		{"a long name", false, "", `"name":"` + strings.Repeat("n", 129) + `"`, strings.Repeat("n", 128), nil},
		{"no collector", true, "p1", `"name":"codex","_meta":{"traceparent":"p2"}`, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Observation
			l := &Link{Settings: Settings{Traced: !tt.untraced}, status: &bytes.Buffer{}}
			o := l.Observer()
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			if tt.header != "" {
				r.Header.Set("Traceparent", tt.header)
				r.Header.Set("Tracestate", "s1")
			}
			var ctx context.Context
			o.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() })).ServeHTTP(httptest.NewRecorder(), r)
			o.Begin(ctx, toolCall(tt.params))
			got = observed(t, l.status.(*bytes.Buffer).Bytes())
			if diff := cmp.Diff(Observation{Kind: KindBegin, Call: 1, Tool: tt.tool, Traces: tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnmeasured checks that without metrics and traces the gateway learns what must not be interrupted.
func TestUnmeasured(t *testing.T) {
	var sent bytes.Buffer
	turn := (&Link{status: &sent}).Observer().Begin(t.Context(), toolCall(`"name":"codex"`)).Turn("thread", protocol.TokenUsage{})
	sent.Reset()
	for _, m := range []protocol.EventMsg{
		protocol.TaskStarted{}, protocol.TokenCount{Info: &protocol.TokenUsageInfo{}}, protocol.Error{}, protocol.TaskComplete{},
		protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}, protocol.MCPToolCallBegin{CallID: "d"}, protocol.MCPToolCallEnd{CallID: "d"},
		protocol.PatchApplyBegin{CallID: "e"}, protocol.PatchApplyEnd{CallID: "e"},
	} {
		turn.Event(m)
	}
	var got []What
	for line := range bytes.Lines(sent.Bytes()) {
		got = append(got, observed(t, line).Step.What)
	}
	if diff := cmp.Diff([]What{Runs, Ran, Calls, Called, Calls, Called}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestContinuedIsReported checks what the gateway learns of a turn that another worker began. Other calls without
// a request do not come over HTTP.
func TestContinuedIsReported(t *testing.T) {
	for tool, want := range map[string]string{"codex": `{"kind":"begin","call":1,"tool":"codex"}`, "": ""} {
		status := &bytes.Buffer{}
		l := &Link{Settings: Settings{Traced: true}, status: status}
		l.Observer().Begin(t.Context(), &codexserver.Request{Principal: "ann", Continues: tool})
		if got := status.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %s", tool, got)
		}
	}
}

// observed returns the observation in a line.
func observed(t *testing.T, line []byte) Observation {
	t.Helper()
	var s Status
	if err := json.Unmarshal(line, &s); err != nil || s.Observed == nil {
		t.Fatalf("%s: %v", line, err)
	}
	return *s.Observed
}

// TestVersion checks that a worker of another release does not start.
func TestVersion(t *testing.T) {
	for version, want := range map[int]bool{Version: true, Version + 1: false, 0: false} {
		if err := (&Link{Settings: Settings{Version: version}}).Check(); (err == nil) != want {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestReportError checks that a reason is one line of limited length.
func TestReportError(t *testing.T) {
	var sent bytes.Buffer
	if err := (&Link{status: &sent}).ReportError(errors.New("a\n{\"ready\":true}\n" + strings.Repeat("x", 2*4096))); err != nil {
		t.Fatal(err)
	}
	if strings.Count(sent.String(), "\n") != 1 || sent.Len() < 4096 || sent.Len() > 4096+100 || !strings.HasPrefix(sent.String(), `{"error":"a {\"ready\":true} xxx`) {
		t.Errorf("sent %.100q, %d bytes", sent.String(), sent.Len())
	}
}
