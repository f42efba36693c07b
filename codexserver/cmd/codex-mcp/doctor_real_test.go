//go:build realcodex

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealDoctor has doctor say what is wrong with the real Codex, signed in by a key, when it cannot reach its provider.
func TestRealDoctor(t *testing.T) {
	f, nobody := newFolders(t), testenv.Nobody(t)
	write(t, filepath.Join(f.home, "auth.json"), `{"OPENAI_API_KEY":"sk-x"}`)
	cmd := f.command(t.Context(), built(t), "doctor", "--engine", "codex", "--codex", must.Get(appserver.Find(""))(t))
	cmd.Env = append(cmd.Env, "HTTPS_PROXY=http://"+nobody)
	out, _ := cmd.CombinedOutput() // the exit status is checked
	if want := "no task can run: the proxy " + nobody + " does not answer"; cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) || !strings.Contains(string(out), "correct or unset HTTPS_PROXY") {
		t.Errorf("no %q:\n%s", want, out)
	}
}
