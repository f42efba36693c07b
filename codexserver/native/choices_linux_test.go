package native_test

import (
	"errors"
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

// TestWritableRootsOfTheCall checks that commands can write in the folders that a call names,
// also after a restart, but not in a folder or link that replaces one.
func TestWritableRootsOfTheCall(t *testing.T) {
	b := setup(t, "---\n"+workspaceOnly, native.Limits{})
	base := t.TempDir()
	root, behind, outside := filepath.Join(base, "root"), filepath.Join(base, "behind"), filepath.Join(base, "outside")
	for _, dir := range []string{root, behind, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(behind, link); err != nil {
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
		ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true, WritableRoots: []string{root, link},
	})
	script := "for d in " + root + " " + behind + " " + outside + "; do echo x > $d/NAME && echo wrote $d; done 2>/dev/null"
	want := "wrote " + root + "\nwrote " + behind + "\n"
	if got := sh(c, strings.ReplaceAll(script, "NAME", "first")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	inOrder(t, lastRequest(b), "<root>"+root+"</root>", "<root>"+behind+"</root>")
	// The link now leads to another folder, which is not a root.
	if err := errors.Join(os.Remove(link), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	if got := sh(c, strings.ReplaceAll(script, "NAME", "second")); got != want {
		t.Errorf("after the link was replaced: %q", got)
	}
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

// TestWritableRootsRefused names folders that a call cannot make writable.
func TestWritableRootsRefused(t *testing.T) {
	b := setup(t, "---\n"+workspaceOnly, native.Limits{})
	repo, bare := filepath.Join(b.cwd, "repo"), filepath.Join(t.TempDir(), "bare")
	for _, dir := range []string{filepath.Join(repo, ".git", "hooks"), filepath.Join(bare, "objects"), filepath.Join(bare, "refs"), filepath.Join(bare, "hooks"), filepath.Join(b.home, "sessions")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(bare, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(b.cwd, "file"), "")
	if err := os.Symlink(filepath.Join(repo, ".git"), filepath.Join(b.cwd, "inner")); err != nil {
		t.Fatal(err)
	}
	outer := filepath.Join(t.TempDir(), "outer")
	if err := os.Symlink(filepath.Join(repo, ".git", "hooks"), outer); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"/":                               "the whole file system",
		"/proc":                           "/proc",
		"/proc/self":                      "/proc",
		"/sys/kernel":                     "/sys",
		"/dev":                            "/dev",
		b.home:                            "it is or holds",
		filepath.Dir(b.home):              "it is or holds",
		filepath.Join(b.home, "sessions"): "it lies in",
		filepath.Join(repo, ".git"):       "a git folder",
		filepath.Join(repo, ".git/hooks"): "a git folder",
		bare:                              "a git folder",
		filepath.Join(bare, "hooks"):      "a git folder",
		outer:                             "a git folder",
		filepath.Join(b.cwd, "inner"):     "is a symbolic link in the writable folder",
		filepath.Join(b.cwd, "file"):      "it is not a folder",
		filepath.Join(b.cwd, "missing"):   "no such file",
		"relative":                        "it is not absolute",
	} {
		for _, trusted := range []bool{false, true} {
			_, err := b.engine.Start(t.Context(), protocol.Config{
				Cwd: b.cwd, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: !trusted, WritableRoots: []string{b.cwd, folder},
			}, &host{})
			var faulty *engine.ConfigError
			if !errors.As(err, &faulty) || !strings.Contains(err.Error(), "argument /config/sandbox_workspace_write/writable_roots/1: "+folder+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", folder, err, want)
			}
		}
	}
	for _, cfg := range []protocol.Config{
		{Sandbox: protocol.SandboxReadOnly}, {Sandbox: protocol.SandboxDangerFullAccess}, {},
	} {
		cfg.Cwd, cfg.WritableRoots = b.cwd, []string{t.TempDir()}
		if _, err := b.engine.Start(t.Context(), cfg, &host{}); err == nil || !strings.Contains(err.Error(), "argument /config/sandbox_workspace_write/writable_roots: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
