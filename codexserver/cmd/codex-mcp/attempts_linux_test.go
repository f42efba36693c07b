package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndAskAttempts makes three attempts, of which one passes the check, and brings what that has committed.
func TestEndToEndAskAttempts(t *testing.T) {
	t.Parallel()
	done := providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		tree := anOwnTree.FindString(string(r.Body))
		if len(r.ToolOutputs()) > 0 || strings.Contains(string(r.Body), "try again") {
			return providertest.Say("did it in " + tree)
		}
		return providertest.Call(providertest.Shell("c1", "touch", "made"))
	}}
	s := sit(t, done)
	servertest.Git(t, s.f.cwd, "init", "-q")
	servertest.Git(t, s.f.cwd, "commit", "-q", "--allow-empty", "-m", "base")
	marks := t.TempDir()
	// The first two checks fail, whatever they look at.
	check := "test -e made && mkdir '" + marks + "'/1 2>/dev/null && exit 1; mkdir '" + marks + "'/2 2>/dev/null && exit 1; true"
	cmd := s.command(t, "ask", "--engine", "native", "-a", "never", "-s", "danger-full-access", "--attempts", "3", "--check", check, "do it")
	cmd.Env = append(cmd.Env, "HOME="+s.f.user)
	out, err := cmd.CombinedOutput()
	text := string(out)
	for _, want := range []string{"· 3 attempts", "1  has ended", "2  has ended", "3  has ended", "This is the result of attempt", "git merge --squash codex/"} {
		if err != nil || !strings.Contains(text, want) {
			t.Fatalf("%q is missing: %v: %s", want, err, text)
		}
	}
	trees, err := filepath.Glob(filepath.Join(s.f.home, "codex-mcp-worktrees", "*", "made"))
	must.OK(t, err)
	must.Equal(t, "worktrees with the work", 3, len(trees))
	if _, err := os.Stat(filepath.Join(s.f.cwd, "made")); err == nil {
		t.Error("an attempt has written into the checkout")
	}
	must.Equal(t, "branches", 3, strings.Count(servertest.Git(t, s.f.cwd, "branch", "--list", "codex/*"), "codex/"))
}

// anOwnTree matches the folder of a worktree.
var anOwnTree = regexp.MustCompile(`codex-mcp-worktrees/[0-9a-f]{8}`)
