//go:build realcodex

package appserver_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

// TestRealAttempts has the best of two attempts of the real Codex, each with a model of its own. Which of them reads the
// script first does not matter: the check passes for one alone.
func TestRealAttempts(t *testing.T) {
	run := providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done by " + r.Model())
		}
		return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo >" + r.Model(), "yield_time_ms": 20000}))
	}}
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n", run)
	servertest.CommitBase(t, r.cwd)
	c := servertest.Join(t, codexserver.New(r.engine, &codexserver.Options{Home: r.home}), servertest.Host{Era: servertest.Handshake})
	raw := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"Do the work","cwd":%q,"attempts":2,"models":["wrong","right"],"check":"test -f right",%s}`, r.cwd, servertest.CommitSandbox))
	var result struct {
		StructuredContent struct {
			servertest.WorktreeResult
			Attempts []protocol.Attempt
		}
	}
	must.OK(t, json.Unmarshal([]byte(raw), &result))
	s := result.StructuredContent
	if s.Status != "completed" || !strings.HasPrefix(s.Content, "done by right\n") || len(s.Attempts) != 1 {
		t.Fatalf("%s", raw)
	}
	other := s.Attempts[0]
	must.Equal(t, "the other attempt", protocol.StatusIncomplete, other.Status)
	for branch, want := range map[string]string{s.Worktree.Branch: "A\tright", other.Branch: "A\twrong"} {
		must.Equal(t, branch, want, servertest.Git(t, r.cwd, "show", "--format=", "--name-status", branch))
	}
}
