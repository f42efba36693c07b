//go:build amd64 || arm64

package enclosure_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestEnclosureAsUser has an enclosure as a user without rights makes it, whose ids alone
// it can map.
func TestEnclosureAsUser(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		enclosuretest.Need(t)
		dir := boxtest.AsUser(t, cmd, "/var/cache") // an enclosure has a /tmp of its own
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+dir, "HOME="+dir)
	}, func(t *testing.T) {
		t.Run("Enclosure", TestEnclosure)
		t.Run("Ends", TestEnclosureEnds)
		t.Run("Fails", TestEnclosureFails)
		t.Run("Try", TestTry)
	})
}

// TestEnclosureInUserNamespace has an enclosure within a user namespace that a user without rights has
// made, as a container has one: root there may not set groups.
func TestEnclosureInUserNamespace(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		enclosuretest.Need(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}, func(t *testing.T) {
		must.Check(t, enclosure.Try("/bin/true"))
	})
}
