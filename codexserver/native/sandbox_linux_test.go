package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// pipeOf makes a named pipe. What it returns reports whether a process holds the pipe for writing.
func pipeOf(t *testing.T, path string) func() bool {
	t.Helper()
	mkfifo(t, path)
	fd := must.Get(unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 1))
		if n > 0 || err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Errorf("the pipe: %d bytes, %v", n, err)
		}
		return err != nil
	}
}

// TestLeftoversEndWithTheConversation starts a daemon by an approved command, and one by a command in the sandbox. The
// first runs until the conversation is closed. The second ends with its command.
func TestLeftoversEndWithTheConversation(t *testing.T) {
	const daemon = `exec 9> "$0"; (setsid sh -c "sleep 1000 > /dev/null 2>&1 < /dev/null &" &); until pgrep -f "^sleep 1000$" > /dev/null; do :; done`
	for name, tt := range map[string]struct {
		policy string
		lives  bool
	}{
		"approved": {"untrusted", true},
		"confined": {"never", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "", native.Limits{})
			pipe := filepath.Join(b.cwd, "alive")
			lives := pipeOf(t, pipe)
			b.provider.Add(providertest.Call(providertest.Shell("c", "sh", "-c", daemon, pipe)), providertest.Say("done"))
			c := b.start(t, &host{exec: allow}, protocol.Config{
				ApprovalPolicy: protocol.ApprovalPolicy(tt.policy), Sandbox: protocol.SandboxWorkspaceWrite,
			})
			turn(t, c, say("go"))
			must.Equal(t, "the daemon is running after the command", tt.lives, lives())
			closed(t, c)
			must.Equal(t, "the daemon is running after its conversation", false, lives())
		})
	}
}

// TestLockByACommand has commands that may only read lock the file of another conversation, whose turn then says which
// process has it open and took the lock. Afterwards the conversation continues.
func TestLockByACommand(t *testing.T) {
	boxtest.Need(t)
	b := setup(t, "", native.Limits{}, providertest.Say("one"))
	h := &host{}
	idle := b.start(t, h, protocol.Config{})
	turn(t, idle, say("first"))
	path := configured(t, h).RolloutPath
	for script, words := range map[string]string{
		"exec flock $0 sleep 1000":             `running elsewhere, or a program holds its file \(process [0-9]+, "flock"\); it can`,
		"exec 9< $0; flock 9; exec sleep 1000": `running elsewhere, or a program holds its file( .*"flock"\))?; it can`, // which has ended, or soon
	} {
		b.provider.Add(providertest.Call(providertest.Shell("c", "sh", "-c", script, path)))
		ctx, cancel := context.WithCancel(t.Context())
		hostile := b.start(t, &host{}, protocol.Config{ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxReadOnly})
		ended := make(chan error, 1)
		go func() { ended <- hostile.Turn(ctx, say("lock it")) }()
		for deadline := time.Now().Add(20 * time.Second); rollout.Claimed(path) == nil && time.Now().Before(deadline); {
			<-time.After(5 * time.Millisecond)
		}
		if err := idle.Turn(t.Context(), say("never said")); err == nil || !regexp.MustCompile(words).MatchString(err.Error()) {
			t.Errorf("a turn after %q: %v", script, err)
		}
		cancel()
		<-ended
		b.provider.Add(providertest.Say("two"))
		turn(t, idle, say("second"))
	}
}

// TestDaemonOfAnMCPServer has an MCP server start a daemon, which ends with the conversation.
func TestDaemonOfAnMCPServer(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	lives := pipeOf(t, alive)
	script := fmt.Sprintf(`exec 9> %s; (setsid sh -c "sleep 1000 > /dev/null 2>&1 < /dev/null &" &); exec '%s'`, alive, os.Args[0])
	b := setup(t, fmt.Sprintf("---\n[mcp_servers.toy]\ncommand = \"/bin/sh\"\nargs = [\"-c\", %q]\nenv = { PLAY = \"mcp server\" }\n", script), native.Limits{},
		providertest.Call(providertest.ToolCall{ID: "c1", Name: "toy__echo", Arguments: `{"x": "1"}`}), providertest.Say("ok"))
	c := b.start(t, &host{}, protocol.Config{})
	turn(t, c, say("use it"))
	must.Equal(t, "the server is running", true, lives())
	closed(t, c)
	must.Equal(t, "the daemon is running after its conversation", false, lives())
}

// TestNewWithoutMain makes no engine in a program whose main does not call Main.
func TestNewWithoutMain(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PLAY=without Main") }, func(t *testing.T) {
		if _, err := native.New(&native.Options{CodexHome: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "native.Main") {
			t.Errorf("error %v", err)
		}
	})
}

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
			must.OK(t, os.MkdirAll(filepath.Dir(target), 0o755), os.MkdirAll(filepath.Dir(name), 0o755))
			if missing == nil {
				must.OK(t, os.WriteFile(target, before, 0o600), os.Remove(name))
			}
			must.OK(t, os.Symlink(target, name))
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

// TestRootsOfAnEngine lets one conversation make links in its workspace, which later ones get as their workspaces.
func TestRootsOfAnEngine(t *testing.T) {
	base := t.TempDir()
	home, outside, work := filepath.Join(base, "home"), filepath.Join(base, "outside"), filepath.Join(base, "work")
	boxtest.Lay(t, base, "home/", "outside/", "work/")
	b := setup(t, "[sandbox_workspace_write]\nwritable_roots = ['"+outside+"/named']", native.Limits{})
	b.engine = open(t, native.Options{CodexHome: b.home, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}})
	run := func(cwd, script string, roots ...string) (output string) {
		t.Helper()
		table := must.Get(json.Marshal(map[string]any{"writable_roots": append([]string{}, roots...), "exclude_slash_tmp": true, "exclude_tmpdir_env_var": true}))(t)
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
	must.OK(t, os.Rename(work, work+"-before"), os.Symlink(outside, work))
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

// TestWorktree checks that a conversation in a worktree can write there, although the worktree is in the
// configuration's folder, and not to what is around it, also after a restart. Patches there need no question.
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
		must.OK(t, os.MkdirAll(dir, 0o755))
	}
	b.cwd = cwd
	cfg := protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true}
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
		must.Equal(t, "questions about patches", asked, n)
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
