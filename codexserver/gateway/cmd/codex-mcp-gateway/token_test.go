package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
)

// TestNewToken checks that --new-token prints a token with its hash, also while the
// configuration is incomplete, and stores nothing.
func TestNewToken(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	form := regexp.MustCompile(`(?s)^([A-Za-z0-9_-]{43})\n.*\n  \[http\.principals\.ann-2\]\n  tokens = \["(sha256:[0-9a-f]{64})"\]\n.*claude mcp add --transport http codex (\S+) --header "Authorization: Bearer ([A-Za-z0-9_-]{43})"\n`)
	seen := map[string]bool{}
	for _, tt := range []struct{ settings, url string }{
		{"", "http://127.0.0.1:4517/mcp"},
		{"[http]\nurl = \"https://codex.example.com/mcp\"\n", "https://codex.example.com/mcp"},
		{"[http.principals.ann-2]\nfolders = [\"/work\"]\n", "http://127.0.0.1:4517/mcp"}, // invalid: tokens is missing
	} {
		if err := os.WriteFile(filepath.Join(home, "codex-mcp.toml"), []byte(tt.settings), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		if status := run(t.Context(), []string{"--new-token", "ann-2"}, &stdout, &stderr); status != 0 {
			t.Fatalf("status %d: %s", status, stderr.String())
		}
		m := form.FindStringSubmatch(stdout.String())
		if m == nil {
			t.Fatalf("printed %s", stdout.String())
		}
		if m[1] != m[4] || access.Hash(m[1]) != m[2] || m[3] != tt.url || seen[m[1]] {
			t.Errorf("token %q, hash %q, URL %q, the client's %q", m[1], m[2], m[3], m[4])
		}
		if seen[m[1]] = true; strings.Contains(stderr.String(), m[1]) {
			t.Error("standard error has the token")
		}
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("left %v, error %v", entries, err)
	}
}
