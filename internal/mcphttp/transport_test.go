package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// connect returns a peer that is connected to a URL.
func connect(t *testing.T, url string, h jsonrpc.Handler) *jsonrpc.Peer {
	t.Helper()
	return connectBy(t, url, h, nil)
}

func initialize(t *testing.T, p *jsonrpc.Peer) {
	t.Helper()
	answer, err := mcptypes.Initialize.Call(t.Context(), p, &mcptypes.InitializeRequestParams{
		ProtocolVersion: "2025-11-25", ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"},
		Capabilities: mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}},
	})
	if err != nil || answer.ProtocolVersion != "2025-11-25" {
		t.Fatalf("initialize: %+v, %v", answer, err)
	}
	must(t, mcptypes.NotificationsInitialized.Notify(t.Context(), p, nil))
}

func tool(t *testing.T, ctx context.Context, p *jsonrpc.Peer, prompt string) (string, error) {
	t.Helper()
	var raw json.RawMessage
	err := p.Call(ctx, "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"`+prompt+`"}}`), &raw)
	return string(raw), err
}

// TestClientSession sends requests and a question of a session by the transport.
func TestClientSession(t *testing.T) {
	s := open(t, asking, nil, nil)
	m := &jsonrpc.Mux{}
	asked := make(chan string, 1)
	mcptypes.ElicitationCreate.Handle(m, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
		asked <- p.Message
		return &mcptypes.ElicitResult{Action: "accept"}, nil
	})
	p := connect(t, s.url, m)
	if err := p.Call(t.Context(), "ping", nil, nil); !errors.Is(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("before initialize: %v", err)
	}
	initialize(t, p)
	for range 3 {
		if got, err := tool(t, t.Context(), p, "go"); err != nil || !strings.Contains(got, "decided "+string(elicit.Approved)) {
			t.Errorf("%s, %v", got, err)
		}
		wait(t, asked)
	}
	if err := p.Call(t.Context(), "no/such", nil, nil); !errors.Is(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("an unknown method: %v", err)
	}
}

// TestClientModern sends requests of 2026-07-28 by the transport.
func TestClientModern(t *testing.T) {
	s := open(t, echo, nil, nil)
	p := connect(t, s.url, nil)
	for _, tt := range []struct{ method, params, want string }{
		{"server/discover", call, `"supportedVersions"`},
		{"tools/call", ofThread, "no conversation"}, // refused if no header mirrors the thread, with and without a list
		{"tools/list", call, `"codex-reply"`},
		{"tools/call", ofThread, "no conversation"},
		{"tools/call", call, "heard hello"},
	} {
		var raw json.RawMessage
		if err := p.Call(t.Context(), tt.method, json.RawMessage(`{`+tt.params+`,`+todaysMeta+`}`), &raw); err != nil || !strings.Contains(string(raw), tt.want) {
			t.Errorf("%s: %s, %v", tt.method, raw, err)
		}
	}
	if err := p.Call(t.Context(), "ping", json.RawMessage(`{`+todaysMeta+`}`), nil); !errors.Is(err, jsonrpc.CodeMethodNotFound) {
		t.Errorf("a removed method: %v", err)
	}
	if err := p.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"nöpe",`+todaysMeta+`}`), nil); !errors.Is(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestClientCancels cancels turns of both eras.
func TestClientCancels(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	p := connect(t, s.url, nil)
	initialize(t, p)
	for _, params := range []string{`{` + call + `}`, `{` + call + `,` + todaysMeta + `}`} {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- p.Call(ctx, "tools/call", json.RawMessage(params), nil) }()
		wait(t, began)
		cancel()
		wait(t, ended)
		if err := wait(t, over); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := p.Call(t.Context(), "ping", nil, nil); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestClientWithoutServer checks the errors for a server that cannot be reached, refuses the
// token, or is not an MCP server.
func TestClientWithoutServer(t *testing.T) {
	var status atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(status.Load()); n != 0 {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(n)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	p := connect(t, other.URL, nil)
	meta := json.RawMessage(`{` + todaysMeta + `}`)
	for _, n := range []int64{0, 200, 202, 302, 401, 403, 500, 503} {
		status.Store(n)
		for _, params := range []json.RawMessage{nil, meta} {
			if err := p.Call(t.Context(), "initialize", params, nil); !errors.Is(err, jsonrpc.CodeInternalError) {
				t.Errorf("status %d: %v", n, err)
			}
		}
	}
	other.Close()
	if err := p.Call(t.Context(), "tools/list", meta, nil); !errors.Is(err, jsonrpc.CodeInternalError) || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("without a server: %v", err)
	}
}

func TestClientAddress(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://127.0.0.1:4517/mcp": true, "http://localhost/mcp": true, "http://[::1]:1/": true, "https://example.com/mcp": true,
		"http://example.com/mcp": false, "http://localhost.example.com/": false, "ftp://localhost/": false, "localhost:4517": false,
		"": false, "http://": false, "https://user:password@example.com/": false,
	} {
		o := &mcphttp.ClientOptions{URL: url}
		if err := o.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}
