package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestHTTPToken(t *testing.T) {
	home := t.TempDir()
	token := must.Get(loadToken(home))(t)
	must.Equal(t, "the token of the second start", token, must.Get(loadToken(home))(t))
	authenticate := bearer(token)
	for ok, all := range map[bool][][]string{
		true: {{"Bearer " + token}, {"bearer " + token}},
		false: {
			nil, {""}, {token}, {"Bearer"}, {"Bearer "}, {"Bearer  " + token}, {"Basic " + token}, {"Bearer " + token + " "},
			{"Bearer " + token[:len(token)-1]}, {"Bearer " + strings.ToLower(token)}, {"Bearer " + token, "Bearer " + token},
		},
	} {
		for _, values := range all {
			if who, err := authenticate(&http.Request{Header: http.Header{"Authorization": values}}); (err == nil && who != "") != ok {
				t.Errorf("%q: %+v, %v", values, who, err)
			}
		}
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for own, ok := range map[string]bool{
		x(32): true, x(200): true, x(200) + strings.Repeat("=", 55) + "\n": true,
		"": false, "short": false, x(31): false, x(201): false, x(200) + strings.Repeat("=", 57): false, x(30) + "\n" + x(30): false,
	} {
		write(t, filepath.Join(home, "codex-mcp", "http-token"), own)
		if token, err := loadToken(home); (err == nil) != ok || ok && token != strings.TrimSpace(own) {
			t.Errorf("%q is the token %q, %v", own, token, err)
		}
	}
}

// TestHTTPServes starts the command and sends requests with and without the token.
func TestHTTPServes(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	var stdout, stderr servertest.Journal
	if status := run(t.Context(), "codex-mcp", []string{"http", "--show-token"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	token, _, _ := strings.Cut(stdout.String(), "\n")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 2)
	serve := func(stderr *servertest.Journal, args ...string) (url string) {
		go func() {
			ended <- run(ctx, "codex-mcp", append([]string{"http", "--engine", "native", "--listen", "127.0.0.1:0", "--log", "debug"}, args...), io.Discard, stderr)
		}()
		until(t, "it does not serve", func() bool {
			_, rest, _ := strings.Cut(stderr.String(), "serving MCP at ")
			before, _, served := strings.Cut(rest, "/mcp;")
			url = before
			return served
		})
		return url
	}
	url := serve(&stderr)
	var proxied servertest.Journal
	if status := (servertest.HTTPClient{URL: serve(&proxied, "--behind-proxy", "192.0.2.1")}).Status(t, "/healthz"); status != http.StatusForbidden {
		t.Errorf("a client that is not the proxy: %d", status)
	}
	for _, tt := range []struct {
		method, path, token, body string
		status                    int
		part, not                 string
	}{
		{"GET", "/healthz", "", "", 200, "ok", token},
		{"GET", "/readyz", "", "", 200, "ready", token},
		{"GET", "/", token, "", 404, "", token},
		{"POST", "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 401, "", token},
		{"POST", "/mcp", "wrong", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 401, "", token},
		{"POST", "/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, 200, `"codex-reply"`, `"approval-policy"`},
		{"POST", "/mcp/", token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, 200, `"codex-reply"`, `"approval-policy"`},
		{"POST", "/mcp/", "wrong", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 401, "", token},
		{"POST", "/mcp/x", token, "{}", 404, "", token},
	} {
		r := must.Get(http.NewRequestWithContext(t.Context(), tt.method, url+tt.path, strings.NewReader(tt.body)))(t)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || !strings.Contains(string(body), tt.part) || strings.Contains(string(body), tt.not) {
			t.Errorf("%s %s: %s %s, %v", tt.method, tt.path, answer.Status, body, err)
		}
	}
	c := must.Get(client.Start(t.Context(), &client.Options{URL: url + mcpPath, Token: token}))(t)
	if info := c.Info(); info.Engine != "native" {
		t.Errorf("the server is %+v", info)
	}
	must.Check(t, c.Close())
	stop()
	for range 2 {
		must.Equal(t, "status", 0, <-ended)
	}
	if strings.Contains(stderr.String(), token) {
		t.Error("standard error has the token")
	}
}
