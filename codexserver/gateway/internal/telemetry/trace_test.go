package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// span is a span as a collector decodes it.
type span struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	ParentID   string `json:"parentSpanId"`
	TraceState string `json:"traceState"`
	Name       string `json:"name"`
	Kind       int    `json:"kind"`
	Start      string `json:"startTimeUnixNano"`
	End        string `json:"endTimeUnixNano"`
}

// collector is a collector of traces.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  []string
	headers []http.Header
	refuse  int // how many requests get 503 first
}

func newCollector(t *testing.T, refuse int) *collector {
	c := &collector{refuse: refuse}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refuse > 0 {
			c.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		c.bodies, c.headers = append(c.bodies, r.URL.Path+" "+string(b)), append(c.headers, r.Header)
	}))
	t.Cleanup(c.Close)
	return c
}

// spans returns the received spans by name.
func (c *collector) spans(t *testing.T) map[string]span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]span{}
	for _, b := range c.bodies {
		_, b, _ = strings.Cut(b, " ")
		var request struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := json.Unmarshal([]byte(b), &request); err != nil {
			t.Fatal(err)
		}
		for _, r := range request.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, one := range s.Spans {
					all[one.Name] = one
				}
			}
		}
	}
	return all
}

// quickWork is a turn with one span of each kind.
func quickWork(o *telemetry.Turn) {
	step(o, protocol.TaskStarted{})
	step(o, tokens(1, 1))
	o.Asked(1, "command")
	o.Decided(1, elicit.Approved, approval.ByClient)
	step(o, protocol.ExecCommandBegin{CallID: "c", Command: []string{"a-command"}, Cwd: "/a/path"})
	step(o, protocol.ExecCommandEnd{CallID: "c", Stdout: "an output"})
	step(o, protocol.TaskComplete{})
	o.End(nil)
}

const (
	inMeta   = "00-11111111111111111111111111111111-2222222222222222-01"
	inHeader = "00-33333333333333333333333333333333-4444444444444444-01"
)

// TestTraces checks the spans of a call that names traces.
func TestTraces(t *testing.T) {
	one, other := map[string]string{"traceparent": inMeta, "tracestate": "a=b"}, map[string]string{"traceparent": inHeader, "tracestate": "c=d"}
	for _, tt := range []struct {
		name          string
		traces        []map[string]string
		trace, parent string // "" is any, and none
		state         string
	}{
		{"one", []map[string]string{one}, inMeta[3:35], inMeta[36:52], "a=b"},
		{"two", []map[string]string{other, one}, inMeta[3:35], inMeta[36:52], "a=b"},
		{"two, of which the last has no state", []map[string]string{other, {"traceparent": inMeta}}, inMeta[3:35], inMeta[36:52], ""},
		{"two, of which the last is broken", []map[string]string{other, {"traceparent": "00-1-2-01"}}, inHeader[3:35], inHeader[36:52], "c=d"},
		{"two spans of the same trace", []map[string]string{one, {"traceparent": inMeta[:36] + "5555555555555555-01"}}, inMeta[3:35], inMeta[36:52], "a=b"},
		{"none", nil, "", "", ""},
		{"an unknown tool", nil, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector(t, 0)
			tel := newTelemetry(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL + "/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
			root, tool := "tools/call codex", "codex"
			if tt.name == "an unknown tool" {
				root, tool = "tools/call", "a prompt"
			}
			o := tel.User("ann").Begin("ann", tool, tt.traces)
			turn := o.Turn("thread", protocol.TokenUsage{})
			o.End(nil) // a task continues
			quickWork(turn)
			if err := tel.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := c.spans(t)
			tree := map[string]string{}
			for name, s := range got {
				for parent, p := range got {
					if p.SpanID == s.ParentID && p.TraceID == s.TraceID {
						tree[name] = parent
					}
				}
				if s.Start == "" || s.End < s.Start {
					t.Errorf("%s is from %s to %s", name, s.Start, s.End)
				}
			}
			want := map[string]string{"turn": root, "model_request": "turn", "command": "turn", "question": "turn"}
			if diff := cmp.Diff(want, tree); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			first := got[root]
			if first.ParentID != tt.parent || tt.trace != "" && first.TraceID != tt.trace || first.TraceState != tt.state || len(first.TraceID) != 32 || first.Kind != 2 {
				t.Errorf("the call: %+v", first)
			}
			all := strings.Join(c.bodies, "\n")
			for _, secret := range []string{"a prompt", "a-command", "/a/path", "an output", "a-detail"} {
				if strings.Contains(all, secret) || strings.Contains(read(tel), secret) {
					t.Errorf("the spans contain %q", secret)
				}
			}
			if !strings.HasPrefix(all, "/v1/traces ") || !strings.Contains(all, `{"key":"service.name","value":{"stringValue":"codex-mcp"}}`) {
				t.Errorf("sent: %s", all)
			}
		})
	}
}

// TestTarget checks the environment variables of OpenTelemetry.
func TestTarget(t *testing.T) {
	c := newCollector(t, 1)
	for _, tt := range []struct {
		name  string
		env   map[string]string
		fault string // part of the error
		sent  string // the path, "" for nothing
	}{
		{"nothing", nil, "", ""},
		{"an endpoint", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, "", "/v1/traces"}, // which answers 503 at first
		{"below a path", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL + "/otlp/"}, "", "/otlp/v1/traces"},
		{"of traces", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/x"}, "", "/x"},
		{"compressed", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, "", "/v1/traces"},
		{"as JSON", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "", "/v1/traces"},
		{"turned off", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_SDK_DISABLED": "true"}, "", ""},
		{"no exporter", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		{"no URL", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "ENDPOINT", ""},
		{"gRPC", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "PROTOCOL", ""},
		{"a broken time", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_TIMEOUT": "5s"}, "TIMEOUT", ""},
		{"broken headers", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, "HEADERS", ""},
		{"no certificate", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "CERTIFICATE", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.mu.Lock()
			c.bodies, c.headers = nil, nil
			c.mu.Unlock()
			if tt.env != nil && tt.env["OTEL_EXPORTER_OTLP_HEADERS"] == "" {
				tt.env["OTEL_EXPORTER_OTLP_HEADERS"] = "X-Key=a%20b, Other=c"
			}
			if tt.fault != "" {
				_, err := telemetry.New(telemetry.Options{Getenv: func(name string) string { return tt.env[name] }, Logger: slog.New(slog.DiscardHandler)})
				if err == nil || !strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error %v, want one about %s", err, tt.fault)
				}
				return
			}
			tel := newTelemetry(t, tt.env)
			beginCall(tel).End(nil)
			if err := tel.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if tt.sent == "" {
				if len(c.bodies) > 0 {
					t.Errorf("sent: %s", c.bodies)
				}
				return
			}
			content := "application/x-protobuf"
			if tt.name == "as JSON" {
				content = "application/json"
			}
			if len(c.bodies) != 1 || c.headers[0].Get("Content-Type") != content || !strings.HasPrefix(c.bodies[0], tt.sent+" ") || c.headers[0].Get("X-Key") != "a b" || c.headers[0].Get("Other") != "c" {
				t.Errorf("sent: %s %v, want one to %s", c.bodies, c.headers, tt.sent)
			}
		})
	}
}

// TestRefusingCollector has collectors that take nothing. The headers go to no other host, the log names
// the failure without them and without most of a long answer, and closing does not fail.
func TestRefusingCollector(t *testing.T) {
	other := newCollector(t, 0)
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"bad request": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
		"long answer": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 1<<20), http.StatusBadRequest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := httptest.NewServer(answer)
			defer c.Close()
			env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "X-Key=hunter2"}
			var log bytes.Buffer
			tel, err := telemetry.New(telemetry.Options{Getenv: func(name string) string { return env[name] }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			beginCall(tel).End(nil)
			if err := tel.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := log.String(); !strings.Contains(got, "cannot send traces") || strings.Contains(got, "hunter2") || len(got) > 8<<10 {
				t.Errorf("%d bytes: %.500s", len(got), got)
			}
			if len(other.spans(t)) > 0 {
				t.Error("the other host got spans")
			}
		})
	}
}
