package mcphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reports collects what a handler reports.
type reports struct {
	mu   sync.Mutex
	all  []mcphttp.Report
	news chan struct{}
	log  bytes.Buffer
}

func (s *reports) add(one mcphttp.Report) {
	s.mu.Lock()
	s.all = append(s.all, one)
	s.mu.Unlock()
	s.news <- struct{}{}
}

// last waits for a report.
func (s *reports) last(t *testing.T) mcphttp.Report {
	t.Helper()
	wait(t, s.news)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[len(s.all)-1]
}

// TestServed checks that each request is reported, and that the log has no content of it.
func TestServed(t *testing.T) {
	s := &reports{news: make(chan struct{}, 1)}
	site := open(t, engine.TurnFunc(nil), nil, func(o *mcphttp.Options) {
		o.Report = s.add
		o.Logger = slog.New(slog.NewJSONHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	body, h := modern("7", "tools/call", "{}", `"name":"codex-wait","arguments":{"threadIds":["a-prompt"]}`)
	h["Mcp-Name"] = "codex-wait"
	strange, strangeHeaders := modern("8", "a-method", "{}", "")
	strange = strings.Replace(strange, `"id":8`, `"id":"an id with words"`, 1)
	for _, tt := range []struct {
		name, method, body string
		headers            headers
		want               mcphttp.Report
	}{
		{"a call", "POST", body, h, mcphttp.Report{Principal: "ann", ID: "7", Method: "tools/call", Tool: "codex-wait", Status: 200}},
		{"no token", "POST", body, headers{"Authorization": "Bearer a-secret"}, mcphttp.Report{Status: 401}},
		{"no JSON", "POST", "a-prompt", nil, mcphttp.Report{Principal: "ann", Status: 400}},
		{"an unknown method", "POST", strange, strangeHeaders, mcphttp.Report{Principal: "ann", ID: "invalid", Method: "a-method", Status: 404}},
		{"an unknown session", "GET", "", headers{"Mcp-Session-Id": "a-session"}, mcphttp.Report{Principal: "ann", Session: "006a7ce0", Method: "GET", Status: 404}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site.do(tt.method, tt.body, tt.headers)
			if diff := cmp.Diff(tt.want, s.last(t), cmpopts.IgnoreFields(mcphttp.Report{}, "Duration")); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
	lines := 0
	for line := range strings.Lines(s.log.String()) {
		var l struct{ Msg, Level, Principal, Session, ID, Method, Tool string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg == "request" {
			lines++
		}
	}
	if lines != 5 {
		t.Errorf("%d lines about requests: %s", lines, s.log.String())
	}
	for _, secret := range []string{"a-prompt", "a-secret", "a-session", "with words"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, s.log.String())
		}
	}
}

// TestLoad checks the numbers of open requests and sessions.
func TestLoad(t *testing.T) {
	e, began, _ := stuck()
	site := open(t, e, nil, nil)
	session := site.initialize(nil)
	stream := site.stream(http.MethodPost, codex("2", "work", ""), session)
	wait(t, began)
	if got, want := site.handler.Load(), (mcphttp.Load{Requests: 1, Sessions: 1, Busy: true}); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
	stream.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = site.handler.Drain(ctx) // it refuses from now on
	if !site.handler.Load().Draining {
		t.Error("it does not drain")
	}
}

type traceKey struct{}

// contextObserver is an observer that records a value of the HTTP request of each MCP request.
type contextObserver struct {
	codexserver.CallObserver
	seen chan any
}

func (c contextObserver) Begin(ctx context.Context, _ *codexserver.Request) codexserver.CallObserver {
	c.seen <- ctx.Value(traceKey{})
	return nil
}

// TestRequestContext checks, in both eras, that an observer sees the values of the HTTP request
// that brought an MCP request.
func TestRequestContext(t *testing.T) {
	c := contextObserver{seen: make(chan any, 1)}
	site := open(t, engine.TurnFunc(nil), &codexserver.Options{Observer: c}, nil)
	inner := site.server.Config.Handler
	site.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), traceKey{}, r.Header.Get("Traceparent"))))
	})
	seen := func(want string) {
		t.Helper()
		if got := wait(t, c.seen); got != want {
			t.Errorf("the observer saw %q, want %q", got, want)
		}
	}
	body, h := modern("1", "tools/list", "{}", "")
	h["Traceparent"] = "one"
	site.post(body, h)
	seen("one")
	session := site.initialize(headers{"Traceparent": "two"})
	seen("two")
	session["Traceparent"] = "three"
	site.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, session)
	seen("three")
}
