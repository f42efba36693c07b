package mcphttp_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// TestHTTP2 uses both eras over HTTP/2, and checks that it refuses the same requests as over
// HTTP/1.
func TestHTTP2(t *testing.T) {
	e, began, ended := stuck()
	s := open(t, e, nil, nil)
	server := httptest.NewUnstartedServer(s.handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	do := func(method, body string, h headers) *http.Response {
		t.Helper()
		r := s.request(t.Context(), method, body, h)
		r.URL.Scheme, r.URL.Host = "https", strings.TrimPrefix(server.URL, "https://")
		if h["Host"] == "" {
			r.Host = ""
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.ProtoMajor != 2 {
			t.Fatalf("%s", answer.Proto)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	body, h := modern("1", "server/discover", "{}", "")
	for _, tt := range []struct {
		name, value string
		status      int
	}{
		{"Accept", "*/*", 200},
		{"Host", "evil.example", 403},
		{"Origin", "https://evil.example", 403},
		{"Authorization", "Bearer mallory", 401},
		{"Mcp-Method", "tools/list", 400},
		{"Content-Type", "text/plain", 415},
	} {
		more := headers{}
		maps.Copy(more, h)
		more[tt.name] = tt.value
		if got := do(http.MethodPost, body, more); got.StatusCode != tt.status {
			t.Errorf("%s %s: %s", tt.name, tt.value, got.Status)
		}
	}
	body, h = modern("1", "tools/call", `{"extensions":{"io.github.codexmcp/events":{}}}`, call)
	v := do(http.MethodPost, body, h)
	wait(t, began)
	v.Body.Close() // cancels this request only
	wait(t, ended)
	session := headers{"Mcp-Session-Id": do(http.MethodPost, hello, nil).Header.Get("Mcp-Session-Id")}
	if got := do(http.MethodDelete, "", session); got.StatusCode != 204 {
		t.Errorf("DELETE: %s", got.Status)
	}
}

// TestNoTokenIsLeaked sends good and bad requests. Neither the log nor the answers to others
// may contain the token or the id of the session.
func TestNoTokenIsLeaked(t *testing.T) {
	log := &requests{all: make(chan request, 64)}
	s := open(t, echo, nil, func(o *mcphttp.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		authenticate := o.Authenticate
		o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", strings.TrimSuffix(r.Header.Get("Authorization"), "-SECRET"))
			return authenticate(r)
		}
	})
	secret := headers{"Authorization": "Bearer ann-SECRET"}
	session := s.initialize(secret)
	var all strings.Builder
	for i, h := range []headers{session, secret, {"Authorization": "Bearer mallory-SECRET"}, {"Authorization": "Basic SECRET"}, {"Authorization": "Bearer ann-SECRET", "Host": "evil.example"}, {"Authorization": "Bearer ann-SECRET", "Mcp-Session-Id": "SECRET"}} {
		for _, body := range []string{codex(fmt.Sprint(i), "hello", ""), `{`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`} {
			all.WriteString(s.post(body, h).body)
		}
	}
	s.do(http.MethodDelete, "", session)
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.text == "" {
		t.Error("nothing was logged")
	}
	for where, text := range map[string]string{"the log": log.text, "an answer": all.String()} {
		if strings.Contains(text, "SECRET") || strings.Contains(text, session["Mcp-Session-Id"]) {
			t.Errorf("%s has a token: %s", where, text)
		}
	}
}
