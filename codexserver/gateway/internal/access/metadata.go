package access

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-json-experiment/json"
)

// metadataPath begins the paths of the metadata of OAuth resources (RFC 9728, section 3).
// The path of the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// MetadataURL returns the URL of the server's metadata, or "" without an authorization
// server.
func MetadataURL(s settings.HTTP) string {
	u, err := url.Parse(s.URL)
	if err != nil || s.OAuth.Issuer == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + metadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Metadata adds handlers for the server's metadata to m. They need no token, but the guard
// checks Host and Origin. Without an authorization server it adds nothing.
func Metadata(m *http.ServeMux, s settings.HTTP, g *mcphttp.Guard) error {
	if s.OAuth.Issuer == "" {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return err
	}
	body, err := json.Marshal(struct {
		Resource string          `json:"resource"`
		Servers  []string        `json:"authorization_servers"`
		Scopes   []mcphttp.Scope `json:"scopes_supported"`
		Methods  []string        `json:"bearer_methods_supported"`
		Name     string          `json:"resource_name"`
	}{s.URL, []string{s.OAuth.Issuer}, mcphttp.Scopes(), []string{"header"}, "codex-mcp"})
	if err != nil {
		return err
	}
	// The path that clients use may differ from the server's own if a proxy rewrites it.
	paths := []string{metadataPath, metadataPath + "/mcp", metadataPath + strings.TrimSuffix(u.Path, "/")}
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if !g.CheckOrigin(w, r) {
			return
		}
		if !slices.Contains(paths, r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "want GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
	m.HandleFunc(metadataPath, answer)
	m.HandleFunc(metadataPath+"/", answer)
	return nil
}
