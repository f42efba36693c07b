package native_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/sys/unix"
)

// TestLeftoversEndWithTheConversation starts a daemon by an approved command, and one by a
// command in the sandbox. The first runs until the conversation is closed, even if the
// conversation is unloaded. The second ends with its command.
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
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			b.provider.Add(providertest.Call(providertest.Shell("c", "sh", "-c", daemon, pipe)), providertest.Say("done"))
			fd, err := unix.Open(pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			lives := func() bool { // reports whether a process holds the pipe for writing
				_, err := unix.Read(fd, make([]byte, 1))
				return errors.Is(err, unix.EAGAIN)
			}
			c := b.start(t, &host{exec: approve}, protocol.Config{
				ApprovalPolicy: protocol.ApprovalPolicy(tt.policy), Sandbox: protocol.SandboxWorkspaceWrite,
			})
			if err := c.Turn(t.Context(), say("go")); err != nil {
				t.Fatal(err)
			}
			if lives() != tt.lives {
				t.Errorf("after the command the daemon is running: %v, want %v", lives(), tt.lives)
			}
			unload(t, c)
			if lives() != tt.lives {
				t.Errorf("after the unload the daemon is running: %v, want %v", lives(), tt.lives)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if lives() {
				t.Error("the daemon is running after its conversation was closed")
			}
		})
	}
}
