package native_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const workspaceOnly = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"

// TestWritableRootsOfTheCall checks that commands can write in a folder that a call names,
// also after a restart, but not in one that replaces it, in a git folder or in the server's own.
func TestWritableRootsOfTheCall(t *testing.T) {
	b := setup(t, "---\n"+workspaceOnly, native.Limits{})
	base := t.TempDir()
	root, behind, outside := filepath.Join(base, "root"), filepath.Join(base, "behind"), filepath.Join(base, "outside")
	for _, dir := range []string{root, behind, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := filepath.Join(behind, ".git")
	if err := os.Mkdir(git, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(c engine.Conversation, script string) string {
		t.Helper()
		b.provider.Add(providertest.Call(providertest.Shell("c", "sh", "-c", script)), providertest.Say("ok"))
		turn(t, c, say("go"))
		all := b.provider.Requests()
		return all[len(all)-1].LastToolOutput()
	}
	h := &host{}
	c := b.start(t, h, protocol.Config{
		ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true,
		Overrides: map[string]json.RawMessage{"sandbox_workspace_write.writable_roots": json.RawMessage(fmt.Sprintf("[%q,%q,%q]", root, git, b.home))},
	})
	script := "for d in " + root + " " + behind + " " + git + " " + b.home + " " + outside + "; do echo x > $d/NAME && echo wrote $d; done 2>/dev/null"
	want := "wrote " + root + "\n"
	if got := sh(c, strings.ReplaceAll(script, "NAME", "first")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	inOrder(t, lastRequest(b), "<root>"+root+"</root>")
	closed(t, c)
	b.reopen(t)
	r := b.resume(t, configured(t, h).RolloutPath, protocol.Config{Keep: keepAll}, &host{})
	defer r.Close()
	if got := sh(r, strings.ReplaceAll(script, "NAME", "third")); got != want {
		t.Errorf("after a restart: %q", got)
	}
	// The folder itself is replaced.
	if err := errors.Join(os.Rename(root, root+"-before"), os.Symlink(outside, root)); err != nil {
		t.Fatal(err)
	}
	if got := sh(r, strings.ReplaceAll(script, "NAME", "fourth")); !strings.Contains(got, "was replaced") {
		t.Errorf("after the folder was replaced: %q", got)
	}
	if files, err := os.ReadDir(outside); err != nil || len(files) > 0 {
		t.Errorf("files outside: %v, %v", files, err)
	}
}
