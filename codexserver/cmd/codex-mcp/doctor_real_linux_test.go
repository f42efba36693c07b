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
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealDoctorWithoutNamespaces has doctor find that the real Codex can run no command in its sandbox, with what helps, unless it
// needs none.
func TestRealDoctorWithoutNamespaces(t *testing.T) {
	codex := servertest.WithoutNamespaces(t, must.Get(appserver.Find(""))(t))
	for name, tt := range map[string]struct {
		config string
		code   int
		want   []string
	}{
		"on-request":  {"approval_policy = \"on-request\"", 1, []string{"tasks can run, but not all that is configured holds", "Codex's sandbox runs no command on this system: bwrap: ", "--security-opt", "AppArmor", "--engine native"}},
		"never":       {"approval_policy = \"never\"", 1, []string{"no task can run: nobody is asked (approval_policy never), and Codex's sandbox runs no command on this system: bwrap: ", "--engine native"}},
		"full access": {"sandbox_mode = \"danger-full-access\"", 0, []string{"tasks can run, with"}},
	} {
		if !nightly.Tests() && name == "full access" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := newFolders(t)
			provider := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(provider.Close)
			write(t, filepath.Join(f.home, "config.toml"), servertest.CodexConfig(provider.URL, tt.config))
			cmd := f.command(t.Context(), built(t), "doctor", "--engine", "codex", "--codex", codex)
			out, _ := cmd.CombinedOutput() // the exit status is checked
			must.Equal(t, "exit status", tt.code, cmd.ProcessState.ExitCode())
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q:\n%s", want, out)
				}
			}
		})
	}
}
