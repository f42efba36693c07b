package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
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
	b.provider.Close()
	tree := filepath.Join(git.Worktrees(b.home), "0123abcd")
	cwd := filepath.Join(tree, "sub")
	b.provider = providertest.New(
		providertest.Call(shell("c1", "first", b.home), patch("c2", "patched"), patch("c3", "../../../asked")), providertest.Say("ok"),
		providertest.Call(shell("c4", "second", b.home), patch("c5", "again")), providertest.Say("ok"))
	t.Cleanup(b.provider.Close)
	for _, dir := range []string{base, cwd, filepath.Join(tree, ".git"), filepath.Join(git.Worktrees(b.home), "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(filepath.Join(b.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(strings.Split(string(config), "\n"), func(line string) bool { return strings.HasPrefix(line, "base_url") })
	lines := strings.Split(string(config), "\n")
	lines[at] = fmt.Sprintf("base_url = %q", b.provider.BaseURL())
	write(t, filepath.Join(b.home, "config.toml"), strings.Join(lines, "\n"))
	b.reopen(t)
	cfg := protocol.Config{
		Cwd: cwd, ApprovalPolicy: protocol.ApprovalOnRequest, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true,
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
		if n != asked {
			t.Errorf("%d patches were asked for, want %d", n, asked)
		}
	}
	h := &host{}
	c, err := b.engine.Start(t.Context(), cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Turn(t.Context(), say("go")), c.Close()); err != nil {
		t.Fatal(err)
	}
	check(h, "first", "patched", 1)

	b.reopen(t)
	h = &host{}
	path, err := fileOf(t, b.engine, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	c, err = b.engine.Resume(t.Context(), engine.Saved{File: path}, protocol.Config{Cwd: cwd, Keep: keepAll}, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Turn(t.Context(), say("go")), c.Close()); err != nil {
		t.Fatal(err)
	}
	check(h, "second", "again", 0)
}
