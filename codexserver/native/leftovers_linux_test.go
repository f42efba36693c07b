package native_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/sys/unix"
)

// pipeOf makes a named pipe. What it returns reports whether a process holds the pipe for writing.
func pipeOf(t *testing.T, path string) func() bool {
	t.Helper()
	mkfifo(t, path)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 1))
		if n > 0 || err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Errorf("the pipe: %d bytes, %v", n, err)
		}
		return err != nil
	}
}

// TestLeftoversEndWithTheConversation starts a daemon by an approved command, and one by a
// command in the sandbox. The first runs until the conversation is closed. The second ends with its
// command.
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
			diff(t, "the daemon is running after the command", tt.lives, lives())
			closed(t, c)
			diff(t, "the daemon is running after its conversation", false, lives())
		})
	}
}

// TestDaemonOfAnMCPServer has an MCP server start a daemon, which ends with the conversation.
func TestDaemonOfAnMCPServer(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	lives := pipeOf(t, alive)
	script := fmt.Sprintf(`exec 9> %s; (setsid sh -c "sleep 1000 > /dev/null 2>&1 < /dev/null &" &); exec %s`, alive, os.Args[0])
	b := setup(t, fmt.Sprintf("---\n[mcp_servers.toy]\ncommand = \"/bin/sh\"\nargs = [\"-c\", %q]\nenv = { PLAY = \"mcp server\" }\n", script), native.Limits{},
		providertest.Call(providertest.ToolCall{ID: "c1", Name: "toy__echo", Arguments: `{"x": "1"}`}), providertest.Say("ok"))
	c := b.start(t, &host{}, protocol.Config{})
	turn(t, c, say("use it"))
	diff(t, "the server is running", true, lives())
	closed(t, c)
	diff(t, "the daemon is running after its conversation", false, lives())
}

// TestNewWithoutMain makes no engine in a program whose main does not call Main.
func TestNewWithoutMain(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PLAY=without Main") }, func(t *testing.T) {
		if _, err := native.New(&native.Options{CodexHome: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "native.Main") {
			t.Errorf("error %v", err)
		}
	})
}
