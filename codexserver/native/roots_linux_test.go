package native_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRootsOfAnEngine lets one conversation make links in its workspace, which later ones get
// as their workspaces.
func TestRootsOfAnEngine(t *testing.T) {
	base := t.TempDir()
	home, outside, work := filepath.Join(base, "home"), filepath.Join(base, "outside"), filepath.Join(base, "work")
	boxtest.Lay(t, base, "home/", "outside/", "work/")
	b := setup(t, "[sandbox_workspace_write]\nwritable_roots = ['"+outside+"/named']", native.Limits{})
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}})
	run := func(cwd, script string, roots ...string) (output string) {
		t.Helper()
		table, err := json.Marshal(map[string]any{"writable_roots": append([]string{}, roots...), "exclude_slash_tmp": true, "exclude_tmpdir_env_var": true})
		if err != nil {
			t.Fatal(err)
		}
		b.provider.Add(providertest.Call(providertest.Shell("c1", "sh", "-c", script)), providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
			output = r.LastToolOutput()
			return providertest.Say("ok")
		}})
		b.cwd = cwd
		c := b.start(t, &host{}, protocol.Config{
			ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite, Overrides: rawConfig("sandbox_workspace_write", string(table)),
		})
		turn(t, c, say("go"))
		closed(t, c)
		return output
	}
	late := filepath.Join(work, "late")
	out := run(work, "ln -s "+outside+" link && ln -s "+outside+" late", late)
	if _, err := os.Readlink(late); err != nil {
		t.Fatal(out)
	}
	for _, tt := range []struct {
		name, cwd string
		roots     []string
	}{
		{"a link as the working folder", filepath.Join(work, "link"), nil},
		{"a root that was missing", work, []string{late}},
		{"the user's home", home, nil},
		{"above the home", base, nil},
		{"the file system", "/", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := run(tt.cwd, "echo x > "+outside+"/new || echo x > "+home+"/.profile", tt.roots...)
			for _, path := range []string{outside + "/new", home + "/.profile"} {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("the command wrote %s: %s", path, out)
				}
			}
		})
	}
	if err := errors.Join(os.Rename(work, work+"-before"), os.Symlink(outside, work)); err != nil {
		t.Fatal(err)
	}
	inOrder(t, run(work, "echo ran"), work+" was replaced")
}

// TestGuardedFiles checks that a folder that holds a guarded file does not become writable, whatever a
// call names, and that the user learns why. Other folders do.
func TestGuardedFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, guarded, cwd, root string
		want                     bool // whether commands can write in the folder
	}{
		{"the working folder", "work/log", "work", "", false},
		{"below the working folder", "work/deep/log", "work", "", false},
		{"below a folder of the call", "other/log", "work", "other", false},
		{"elsewhere", "logs/log", "work", "", true},
		{"beside a folder of the call", "logs/log", "work", "other", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "", native.Limits{})
			top := t.TempDir()
			in := func(path string) string { return filepath.Join(top, path) }
			boxtest.Lay(t, top, "work/deep/", "other/", "logs/")
			b.guarded = []string{in(tt.guarded)}
			b.reopen(t)
			b.cwd = in(tt.cwd)
			at := b.cwd
			cfg := protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true}
			cfg.Overrides = rawConfig("sandbox_workspace_write.exclude_slash_tmp", "true")
			if tt.root != "" {
				at = in(tt.root)
				cfg.Overrides = rawConfig("sandbox_workspace_write", fmt.Sprintf(`{"exclude_slash_tmp":true,"writable_roots":[%q]}`, at))
			}
			b.provider.Reset(providertest.Call(providertest.Shell("c1", "sh", "-c", "echo x >"+at+"/new; echo x >"+b.guarded[0])), providertest.Say("ok"))
			h := &host{}
			turn(t, b.start(t, h, cfg), say("go"))
			news := strings.Join(h.news(), "\n")
			informed := strings.Contains(news, at+" is read-only for commands: it is or holds "+b.guarded[0])
			if _, err := os.Stat(filepath.Join(at, "new")); (err == nil) != tt.want || informed == tt.want {
				t.Errorf("written: %v, informed: %t; %q", err, informed, news)
			}
			if _, err := os.Stat(b.guarded[0]); err == nil {
				t.Error("the guarded file was written")
			}
		})
	}
}
