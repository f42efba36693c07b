package turn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TestDiffOfPatches checks that git applies the diff of a turn whose folder is not looked at,
// as far as the diff does not name a file.
func TestDiffOfPatches(t *testing.T) {
	for _, tt := range []struct {
		name          string
		git           bool
		before, after map[string]string
		patch         string
		omits         string // in the diff's notes
	}{
		{"update", true, map[string]string{"a": "1\n2\n"}, map[string]string{"a": "1\n3\n"}, "*** Update File: a\n@@\n 1\n-2\n+3\n", ""},
		{"without a repository", false, map[string]string{"a": "1\n2\n"}, map[string]string{"a": "1\n3\n", "b": "x\n"}, "*** Update File: a\n@@\n 1\n-2\n+3\n*** Add File: b\n+x\n", ""},
		{"move", true, map[string]string{"a": "1\n2\n"}, map[string]string{"d/b": "1\n3\n"}, "*** Update File: a\n*** Move to: d/b\n@@\n 1\n-2\n+3\n", ""},
		{"delete", true, map[string]string{"a": "1\n", "b": "2\n"}, map[string]string{"b": "2\n"}, "*** Delete File: a\n", ""},
		{"odd names", true, map[string]string{"a b": "1\n", "é\"": "2\n"}, map[string]string{"a b": "3\n", "é\"": "4\n"}, "*** Update File: a b\n@@\n-1\n+3\n*** Update File: é\"\n@@\n-2\n+4\n", ""},
		{"invalid UTF-8", true, map[string]string{"a": "1\n\xff\n", "b": "1\n"}, map[string]string{"b": "2\n"}, "*** Delete File: a\n*** Update File: b\n@@\n-1\n+2\n", "a/a b/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			model := providertest.New(
				providertest.Call(providertest.Shell("1", "apply_patch", "*** Begin Patch\n"+tt.patch+"*** End Patch")),
				providertest.Say("done"),
			)
			defer model.Close()
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
				"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
				"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": "danger-full-access",
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			dir, old := t.TempDir(), t.TempDir()
			for name, text := range tt.before {
				for _, d := range []string{dir, old} {
					if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.git {
				servertest.Git(t, dir, "init", "-q")
			}
			share := thread.NewTable(e, &approve.Options{}).Share("")
			defer share.Close()
			c := newWatch(changes.Options{Changes: setting.Changes{Off: true}})
			a := thread.Attend{Turn: c.Turn, Awaited: true}
			th, err := share.Start(t.Context(), protocol.Config{Cwd: dir}, a)
			if err != nil {
				t.Fatal(err)
			}
			if err := th.Begin(a, protocol.TurnInput{Items: protocol.TextInput("go")}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.after {
				if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != text {
					t.Fatalf("the patch made %q, %v", data, err)
				}
			}
			diff := c.Found().Diff
			cmd := exec.CommandContext(t.Context(), "git", "apply", "-")
			cmd.Dir, cmd.Stdin = old, strings.NewReader(diff)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git apply: %v: %s\n%s", err, out, diff)
			}
			if tt.omits != "" && !strings.Contains(diff, "): "+tt.omits+"\n") {
				t.Errorf("the diff does not name %s:\n%s", tt.omits, diff)
			}
			for name := range tt.before {
				_, err := os.Lstat(filepath.Join(old, name))
				if _, kept := tt.after[name]; kept != (err == nil) && "a/"+name+" b/"+name != tt.omits {
					t.Errorf("after git apply, %s: %v\n%s", name, err, diff)
				}
			}
			for name, text := range tt.after {
				if data, err := os.ReadFile(filepath.Join(old, name)); "a/"+name+" b/"+name != tt.omits && (err != nil || string(data) != text) {
					t.Errorf("git apply made %s %q, %v\n%s", name, data, err, diff)
				}
			}
		})
	}
}
