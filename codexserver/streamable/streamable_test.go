package streamable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// post sends a message as a user to a host, with further headers, each after its name.
func post(h http.Handler, user, host, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://"+host+"/mcp", strings.NewReader(body))
	for i, headers := 0, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "User", user}, headers...); i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestOptions checks that each option reaches the handler. Package mcphttp has the tests of what they do.
func TestOptions(t *testing.T) {
	t.Parallel()
	server := codexserver.New(engine.TurnFunc(nil), nil)
	for _, o := range []*streamable.Options{nil, {}} {
		if h, err := streamable.New(server, o); h != nil || err == nil {
			t.Errorf("%+v: no error without Authenticate: %v", o, h)
		}
	}
	h := must.Get(streamable.New(server, &streamable.Options{
		Authenticate: func(r *http.Request) (string, error) {
			user := r.Header.Get("User")
			if user == "stranger" {
				return user, errors.New("unknown")
			}
			return user, nil
		},
		Challenge: "Basic", Hosts: []string{"example.com"}, Origins: []string{"https://page.example"}, Users: 2, MaxBody: len(hello),
	}))(t)
	defer h.Close()
	for _, tt := range []struct {
		name, user, host, origin, body string
		status                         int
	}{
		{"a user", "ann", "example.com", "", hello, 200},
		{"a page", "ann", "example.com", "https://page.example", hello, 200},
		{"an error of Authenticate", "stranger", "example.com", "", hello, 401},
		{"no user", "", "example.com", "", hello, 401},
		{"another host", "ann", "localhost", "", hello, 403},
		{"another page", "ann", "example.com", "https://example.org", hello, 403},
		{"a long message", "ann", "example.com", "", hello + " ", 413},
		{"a second user", "bob", "example.com", "", hello, 200},
		{"a third user", "eve", "example.com", "", hello, 403},
	} {
		w := post(h, tt.user, tt.host, tt.body, "Origin", tt.origin)
		if w.Code != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
		if got := w.Header().Get("WWW-Authenticate"); (got == "Basic") != (tt.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", tt.name, got)
		}
	}
}

// TestSessions opens more sessions than a user may have: each further one ends the oldest. The others end
// when they are idle. The logger hears of each request.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := must.Get(streamable.New(codexserver.New(engine.TurnFunc(nil), nil), &streamable.Options{
			Authenticate: func(*http.Request) (string, error) { return "ann", nil }, Hosts: []string{"example.com"},
			MaxSessions: 2, IdleTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}))(t)
		defer h.Close()
		send := func(session, body string) *httptest.ResponseRecorder {
			w := post(h, "ann", "example.com", body, "Mcp-Session-Id", session)
			synctest.Wait()
			return w
		}
		var sessions []string
		for range 3 {
			sessions = append(sessions, send("", hello).Header().Get("Mcp-Session-Id"))
			time.Sleep(time.Second)
		}
		pings := func(when string, want ...int) {
			t.Helper()
			for i, session := range sessions {
				must.Equal(t, fmt.Sprint("session ", i, when), want[i], send(session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`).Code)
			}
		}
		pings("in use", 404, 200, 200)
		time.Sleep(50 * time.Second)
		pings("soon", 404, 200, 200)
		time.Sleep(2 * time.Minute)
		pings("later", 404, 404, 404)
		if log.Len() == 0 {
			t.Error("nothing is logged")
		}
	})
}

// TestEnd has the one call that a user may have, then drains and closes the handler: it waits for
// the call until its context ends, refuses new work meanwhile, and ends the call when it is closed.
func TestEnd(t *testing.T) {
	t.Parallel()
	begun, over := make(chan struct{}), make(chan struct{})
	h := must.Get(streamable.New(codexserver.New(engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}), nil), &streamable.Options{
		Authenticate: func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }, Hosts: []string{"example.com"}, Users: 2, MaxRequests: 1,
	}))(t)
	call := func(user string) int {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		return post(h, user, "example.com", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"p"},`+meta+`}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "codex").Code
	}
	go func() {
		call("ann")
		close(over)
	}()
	<-begun
	must.Equal(t, "a second call", http.StatusTooManyRequests, call("ann"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drained while a call runs: %v", err)
	}
	must.Equal(t, "a new call", http.StatusServiceUnavailable, call("bob"))
	must.Check(t, h.Close())
	<-over
	if err := h.Drain(t.Context()); err != nil {
		t.Errorf("drained after the end: %v", err)
	}
}
