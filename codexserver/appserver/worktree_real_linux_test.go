//go:build realcodex

package appserver_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealWorktreeCommit has the work of a conversation of the real Codex committed, which cannot commit in its worktree.
func TestRealWorktreeCommit(t *testing.T) {
	line := func(cmd string) providertest.Turn {
		return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": cmd, "yield_time_ms": 20000}))
	}
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\ndeveloper_instructions = \"CONFIGURED\"\n",
		line(servertest.CommitWork), report, line("echo more >again"), providertest.Say("done"))
	servertest.CommitBase(t, r.cwd)
	s := codexserver.New(r.engine, &codexserver.Options{Home: r.home})
	c := servertest.Join(t, s, servertest.Host{Era: servertest.Handshake})
	result := servertest.CheckCommit(t, r.cwd, c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"Do the work\n","cwd":%q,"worktree":true,%s}`, r.cwd, servertest.CommitSandbox)))
	if !strings.Contains(result.Content, "fatal: ") { // index.lock, or no repository where Codex has a /dev of its own
		t.Errorf("the model could commit: %s", result.Content)
	}
	if body := string(r.Requests()[0].Body); strings.Count(body, "You need not commit") != 1 || !strings.Contains(body, `CONFIGURED\n\nYou work in a git worktree`) {
		t.Errorf("the model is told %s", body)
	}
	must.Equal(t, "the worktree lies in", filepath.Join(r.home, "codex-mcp-worktrees"), filepath.Dir(result.Worktree.Path))
	c.CallTool(t, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"More"}`, result.ThreadID))
	must.Equal(t, "the commit of a reply", "A\tagain", servertest.Git(t, r.cwd, "show", "--format=", "--name-status", result.Worktree.Branch))
	must.Equal(t, "its parent", result.Worktree.Commit, servertest.Git(t, r.cwd, "rev-parse", result.Worktree.Branch+"^"))
}
