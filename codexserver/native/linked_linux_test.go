package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const workspaceOnly = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"

// TestLinkedConfiguration has a file of the home that is a link into the workspace. A command
// writes it, removes it or puts another in its place, and a patch changes it.
func TestLinkedConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, script string }{
		{"written", "dots/a/config.toml", "echo evil >>dots/a/config.toml"},
		{"replaced", "dots/a/config.toml", "echo evil >x; mv x dots/a/config.toml"},
		{"its folder replaced", "dots/a/config.toml", "mv dots/a b; mkdir dots/a; echo evil >dots/a/config.toml"},
		{"a missing file made", "dots/a/codex-mcp.toml", "echo evil >dots/a/codex-mcp.toml"},
		{"the file of rules", "dots/a/rules.json", "echo evil >dots/a/rules.json"},
		{"by a patch", "dots/a/config.toml", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			boxtest.Need(t)
			call := providertest.Shell("c", "sh", "-c", tt.script)
			if tt.script == "" {
				call = providertest.Shell("c", "apply_patch", "*** Begin Patch\n*** Add File: dots/a/x\n+x\n*** Delete File: dots/a/config.toml\n*** End Patch\n")
			}
			b := setup(t, "---\n"+workspaceOnly, native.Limits{}, providertest.Call(call), providertest.Say("ok"))
			name := filepath.Join(b.home, filepath.Base(tt.file))
			if filepath.Base(tt.file) == "rules.json" {
				name = filepath.Join(b.home, "codex-mcp", "rules.json")
			}
			target := filepath.Join(b.cwd, tt.file)
			before, missing := os.ReadFile(name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.MkdirAll(filepath.Dir(name), 0o755)); err != nil {
				t.Fatal(err)
			}
			if missing == nil {
				if err := errors.Join(os.WriteFile(target, before, 0o600), os.Remove(name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, name); err != nil {
				t.Fatal(err)
			}
			b.reopen(t)
			asked := 0
			h := &host{}
			h.on = func(m protocol.EventMsg) {
				if _, is := m.(protocol.PatchApprovalRequest); is {
					asked++
					h.deny = true
				}
			}
			c := b.start(t, h, protocol.Config{ApprovalPolicy: "on-request", Sandbox: "workspace-write"})
			turn(t, c, say("go"))
			after, err := os.ReadFile(name)
			if strings.Contains(string(after), "evil") || missing == nil && string(after) != string(before) || (err == nil) != (missing == nil) {
				t.Errorf("%q, %v", after, err)
			}
			if tt.script == "" && asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
