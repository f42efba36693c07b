package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestMetadata checks that the metadata is served to every request that the guard admits.
func TestMetadata(t *testing.T) {
	s := settings.HTTP{URL: "https://codex.example.com/team/mcp", OAuth: settings.OAuth{Issuer: "https://issuer.example.com"}}
	g, err := mcphttp.NewGuard(&mcphttp.Options{
		Authenticate: func(*http.Request) (mcphttp.Principal, error) { panic("asked for a token") },
		Hosts:        []string{"codex.example.com"}, Origins: []string{"https://app.example.com"},
	})
	must.OK(t, err)
	m := http.NewServeMux()
	must.OK(t, access.Metadata(m, s, g))
	const want = `{"resource":"https://codex.example.com/team/mcp","authorization_servers":["https://issuer.example.com"],"scopes_supported":["codex:run","codex:approve","codex:read"],"bearer_methods_supported":["header"],"resource_name":"codex-mcp"}`
	for _, tt := range []struct {
		method, path, host, origin string
		status                     int
	}{
		{"GET", "/.well-known/oauth-protected-resource/mcp", "codex.example.com", "", 200},
		{"GET", "/.well-known/oauth-protected-resource/team/mcp", "codex.example.com", "https://app.example.com", 200},
		{"OPTIONS", "/.well-known/oauth-protected-resource/mcp", "codex.example.com", "https://app.example.com", 204},
		{"POST", "/.well-known/oauth-protected-resource/mcp", "codex.example.com", "", 405},
		{"GET", "/.well-known/oauth-protected-resource/mcp", "evil.example", "", 403},
		{"GET", "/.well-known/oauth-protected-resource/mcp", "codex.example.com", "https://evil.example", 403},
		{"GET", "/.well-known/oauth-protected-resource/other", "codex.example.com", "", 404},
	} {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if tt.method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		if w.Code != tt.status || tt.status == 200 && (w.Body.String() != want || w.Header().Get("Content-Type") != "application/json") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, w.Code, w.Body)
		}
		if shared := w.Header().Get("Access-Control-Allow-Origin"); tt.status < 300 && shared != tt.origin {
			t.Errorf("%s %s: shared with %q", tt.method, tt.path, shared)
		}
	}
	for url, want := range map[string]string{
		"https://codex.example.com/mcp":         "https://codex.example.com/.well-known/oauth-protected-resource/mcp",
		"https://codex.example.com":             "https://codex.example.com/.well-known/oauth-protected-resource",
		"https://codex.example.com/a%20b/{x}/m": "https://codex.example.com/.well-known/oauth-protected-resource/a%20b/%7Bx%7D/m",
	} {
		s.URL = url
		if got := access.MetadataURL(s); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
	// Without an authorization server there is no metadata.
	s.OAuth = settings.OAuth{}
	m = http.NewServeMux()
	w := httptest.NewRecorder()
	must.Check(t, access.Metadata(m, s, g))
	if m.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/oauth-protected-resource", nil)); w.Code != 404 || access.MetadataURL(s) != "" {
		t.Errorf("status %d, at %q", w.Code, access.MetadataURL(s))
	}
}
