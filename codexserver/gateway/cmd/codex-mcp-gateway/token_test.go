package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
)

// TestNewToken checks that --new-token prints a token with its hash, also while the configuration is incomplete, and stores
// nothing.
func TestNewToken(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	form := regexp.MustCompile(`(?s)^([A-Za-z0-9_-]{43})\n.*\n  \[http\.principals\.ann-2\]\n  tokens = \["(sha256:[0-9a-f]{64})"\]\n.*claude mcp add --transport http codex (\S+) --header "Authorization: Bearer ([A-Za-z0-9_-]{43})"\n`)
	for settings, url := range map[string]string{
		"[http]\nurl = \"https://codex.example.com/mcp\"\n": "https://codex.example.com/mcp",
		"[http.principals.ann-2]\nfolders = [\"/work\"]\n":  "http://127.0.0.1:4517/mcp", // invalid: tokens is missing
	} {
		boxtest.Lay(t, home, "codex-mcp.toml="+settings)
		var stdout, stderr strings.Builder
		status := run(t.Context(), []string{"--new-token", "ann-2"}, &stdout, &stderr)
		m := form.FindStringSubmatch(stdout.String())
		if status != 0 || m == nil || m[1] != m[4] || access.Hash(m[1]) != m[2] || m[3] != url || strings.Contains(stderr.String(), m[1]) {
			t.Errorf("%q: status %d, printed %q, %s", settings, status, m, stderr.String())
		}
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("left %v, error %v", entries, err)
	}
}
