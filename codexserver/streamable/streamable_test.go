package streamable_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

// TestOptions checks that each option reaches the handler. Package mcphttp has the tests of
// what they do.
func TestOptions(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	server := codexserver.New(engine.TurnFunc(nil), nil)
	for _, o := range []*streamable.Options{nil, {}} {
		if h, err := streamable.New(server, o); err == nil {
			h.Close()
			t.Errorf("%+v: no error without Authenticate", o)
		}
	}
	h, err := streamable.New(server, &streamable.Options{
		Authenticate: func(r *http.Request) (string, error) {
			user := r.Header.Get("User")
			if user == "stranger" {
				return user, errors.New("unknown")
			}
			return user, nil
		},
		Challenge: "Basic", Hosts: []string{"example.com"}, Origins: []string{"https://page.example"}, Users: 2, MaxBody: len(hello), MaxSessions: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
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
		r := httptest.NewRequest(http.MethodPost, "http://"+tt.host+"/mcp", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("User", tt.user)
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, w.Code, tt.status, w.Body)
		}
		if got := w.Header().Get("WWW-Authenticate"); (got == "Basic") != (tt.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", tt.name, got)
		}
	}
}
