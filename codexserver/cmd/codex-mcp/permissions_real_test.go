//go:build realcodex

package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealDenyRead ends the start with the real Codex where sandbox.deny_read keeps files that Codex would read.
func TestRealDenyRead(t *testing.T) {
	codex := must.Get(appserver.Find(""))(t)
	for _, engine := range []string{"auto", "codex"} {
		f := newFolders(t)
		provider := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(provider.Close)
		write(t, filepath.Join(f.home, "config.toml"), servertest.CodexConfig(provider.URL, ""))
		write(t, filepath.Join(f.home, "codex-mcp.toml"), "sandbox.deny_read = [\".env\"]\n")
		cmd := f.command(t.Context(), built(t), "--engine", engine, "--codex", codex)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "sandbox.deny_read: the installed Codex does not know it") {
			t.Errorf("%s: %v\n%s", engine, err, out)
		}
	}
}
