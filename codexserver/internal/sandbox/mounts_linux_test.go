//go:build amd64 || arm64

package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox/sandboxtest"
	"golang.org/x/sys/unix"
)

// pinVar holds, for the run of the test in its namespace, a folder that the parent removes:
// there it cannot be removed while something is mounted in it.
const pinVar = "SANDBOX_TEST_PIN"

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

// TestPinChangedName changes a name after it was opened and before it was mounted on
// itself. The path must not count as one that leads nowhere. The test runs in a mount
// namespace of its own.
func TestPinChangedName(t *testing.T) {
	base := os.Getenv(pinVar)
	sandboxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		sandboxtest.NeedTier(t, sandbox.TierNamespaces)
		mayMap(t)
		cmd.Env = append(cmd.Env, pinVar+"="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}, func(t *testing.T) {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name   string
			change func(path string) error
		}{
			{"as it was", func(string) error { return nil }},
			{"renamed", func(path string) error { return os.Rename(path, path+"2") }},
			{"removed", os.Remove},
			{"replaced", func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Mkdir(path, 0o700)) }},
			{"without its folder", func(path string) error { return errors.Join(os.Remove(path), os.Remove(filepath.Dir(path))) }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				path := filepath.Join(base, tt.name, "name") // the mounts end with the process
				if err := os.MkdirAll(path, 0o700); err != nil {
					t.Fatal(err)
				}
				dir, err := sandbox.OpenName(unix.AT_FDCWD, filepath.Dir(path))
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(dir)
				fd, err := sandbox.OpenName(dir, "name")
				if err != nil {
					t.Fatal(err)
				}
				if err := tt.change(path); err != nil {
					t.Fatal(err)
				}
				fd, _, err = sandbox.PinOpened(dir, "name", fd, true)
				if (err == nil) != (tt.name == "as it was") || errors.Is(err, sandbox.ErrNowhere) {
					t.Errorf("%v", err)
				}
				unix.Close(fd)
				if _, _, err := sandbox.PinName(dir, "missing", true); !errors.Is(err, sandbox.ErrNowhere) {
					t.Errorf("a missing name: %v", err)
				}
			})
		}
	})
}
