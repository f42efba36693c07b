package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestWorktree checks that a conversation in a worktree can write there, although the worktree is in
// the configuration's folder, and not to what is around it, also after a restart. Patches there need
// no question.
func TestWorktree(t *testing.T) {
	t.Parallel()
	script := func(name string) string {
		return strings.ReplaceAll(`for f in own ../top ../.git/x BASE/x HOME/x TREES/x TREES/other/x; do
	(echo x > "$f") 2>/dev/null && echo "$f" >> own; done; mv own NAME`, "NAME", name)
	}
	patch := func(id, file string) providertest.ToolCall {
		return providertest.Tool(id, "apply_patch", map[string]any{"input": "*** Begin Patch\n*** Add File: " + file + "\n+x\n*** End Patch\n"})
	}
	top := t.TempDir()
	base := filepath.Join(top, "base")
	shell := func(id, name, home string) providertest.ToolCall {
		words := strings.NewReplacer("BASE", base, "HOME", home, "TREES", git.Worktrees(home)).Replace(script(name))
		return providertest.Shell(id, "sh", "-c", words)
	}
	b := setup(t, "include_apply_patch_tool = true\n---\n[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n", native.Limits{})
	tree := filepath.Join(git.Worktrees(b.home), "0123abcd")
	cwd := filepath.Join(tree, "sub")
	b.provider.Add(
		providertest.Call(shell("c1", "first", b.home), patch("c2", "patched"), patch("c3", "../../../asked")), providertest.Say("ok"),
		providertest.Call(shell("c4", "second", b.home), patch("c5", "again")), providertest.Say("ok"))
	for _, dir := range []string{base, cwd, filepath.Join(tree, ".git"), filepath.Join(git.Worktrees(b.home), "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.cwd = cwd
	cfg := protocol.Config{
		ApprovalPolicy: protocol.ApprovalOnRequest, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true,
	}
	check := func(h *host, name, patched string, asked int) {
		t.Helper()
		written, err := os.ReadFile(filepath.Join(cwd, name))
		if err != nil || string(written) != "x\nown\n" {
			t.Errorf("written %q, %v; %q", written, err, h.take())
		}
		if _, err := os.Stat(filepath.Join(cwd, patched)); err != nil {
			t.Error(err)
		}
		n := 0
		for _, m := range h.events {
			if m.EventType() == "apply_patch_approval_request" {
				n++
			}
			if note, ok := m.(protocol.BackgroundEvent); ok {
				t.Errorf("background event %q", note.Message)
			}
		}
		diff(t, "questions about patches", asked, n)
	}
	h := &host{}
	c := b.start(t, h, cfg)
	says(t, c, "go")
	closed(t, c)
	check(h, "first", "patched", 1)

	b.reopen(t)
	h = &host{}
	path := fileOf(t, b.engine, c.ID())
	c = b.resume(t, path, protocol.Config{Cwd: cwd, Keep: keepAll}, h)
	says(t, c, "go")
	closed(t, c)
	check(h, "second", "again", 0)
}
