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
		mayMap(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}, func(t *testing.T) {
		if err := enclosure.Try("/bin/true"); err != nil {
			t.Error(err)
		}
	})
}

// mayMap lets the test map the ids of a process that it starts. The files in /proc of a process that
// is not dumpable belong to root, and only root can write the mappings of its child. Other tests make
// this process not dumpable.
func mayMap(t *testing.T) {
	t.Helper()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(dumpable), 0, 0, 0) })
}
