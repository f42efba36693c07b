package worker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// TestHand checks that a principal's home receives the configuration without the settings by which other principals sign in.
func TestHand(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Names)
	server, own := filepath.Join(t.TempDir(), "[server"), filepath.Join(t.TempDir(), "o[w]n*")
	write := func(dir string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(dir, name)
			must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
		}
	}
	hash := "sha256:" + strings.Repeat("ab", 32)
	write(server, map[string]string{
		"codex-mcp.toml": `calls.tools = ["codex-list"]
[http]
hosts = ["example.com"]
[http.principals.ann]
tokens = ["` + hash + `"]
folders = ["/srv/ann"]
[approvals]
log = "/var/log/approvals"
page_port = 4000
page_origin = "https://pages.example"
timeout = "90s"
deny = [["rm", "-rf"]]
[limits]
tasks = 7
`,
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid",
		"auth.json": "secret", "codex-mcp/http-token": "secret",
	})
	write(own, map[string]string{"config.toml": "model = 'old'\n", "loose.config.toml": "sandbox_mode = 'danger-full-access'\n", "auth.json": "own", "other": "stays"})
	for name, to := range map[string]string{"AGENTS.md": "other", "AGENTS.override.md": "made later"} {
		must.OK(t, os.Symlink(filepath.Join(own, to), filepath.Join(own, name)))
	}
	files, err := worker.Hand(server)
	must.OK(t, err)
	for name, text := range files {
		if strings.Contains(string(text), hash[7:]) || strings.Contains(string(text), "secret") {
			t.Errorf("%s has %s", name, text)
		}
	}
	must.OK(t, worker.Take(own, files))
	write(own, map[string]string{"made later": "the principal's own"})
	got := map[string]string{}
	for _, name := range []string{"config.toml", "work.config.toml", "loose.config.toml", "AGENTS.md", "AGENTS.override.md", "rules/default.rules", "auth.json", "other"} {
		if text, err := os.ReadFile(filepath.Join(own, name)); err == nil {
			got[name] = string(text)
		}
	}
	want := map[string]string{
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid", "auth.json": "own", "other": "stays",
	}
	must.Equal(t, "the principal's home", want, got)
	of := func(home string) *config.Settings {
		t.Helper()
		s, _, err := config.LoadSettings(home, nil)
		must.OK(t, err)
		return s
	}
	a, b := of(server), of(own)
	a.HTTP, a.Approvals.Log, a.Approvals.PagePort, a.Approvals.PageOrigin = b.HTTP, nil, 0, ""
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the settings (-server +principal):\n%s", diff)
	}
	if err := worker.Take(own, map[string][]byte{"../config.toml": nil}); err == nil {
		t.Error("a file outside of the home was written")
	}
	write(server, map[string]string{"codex-mcp.toml": "tools = ["})
	if files, err := worker.Hand(server); err == nil {
		t.Errorf("settings that cannot be read were handed: %q", files)
	}
}
