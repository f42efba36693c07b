package run_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// hiddenVar holds, for the unprivileged run of a test, the path of a program that its
// user cannot read, whose processes are therefore hidden.
const hiddenVar = "RUN_TEST_HIDDEN"

// TestHiddenProcesses ends a command whose processes /proc does not show.
func TestHiddenProcesses(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { hideProcesses(t, cmd) }, endHidden)
}

func endHidden(t *testing.T) {
	hidden := os.Getenv(hiddenVar)
	var p run.Starter
	defer p.Close()
	cmd, r := script(t, `echo $$; h=`+hidden+`; (setsid $h 60 &); $h 60 & $h 60 & (setsid setsid $h 60 &); exec $h 60`)
	proc := startIn(t, &p, cmd)
	pid := make([]byte, 16)
	n, err := r.Read(pid)
	must.OK(t, err)
	comm := "/proc/" + strings.TrimSpace(string(pid[:n])) + "/comm"
	for { // until the shell has become the program
		if _, err := os.Stat(comm); err != nil {
			break
		}
	}
	must.OK(t, proc.End())
	if _, err := io.ReadAll(r); err != nil { // until the last writer has ended
		t.Error(err)
	}
}

// hideProcesses lets cmd run as a user in a mount namespace whose /proc shows a user only
// what that user may trace. Only root can do that.
func hideProcesses(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if !boxtest.IsRoot() {
		t.Skip("only root can act as another user and mount /proc")
	}
	dir, err := os.MkdirTemp("/var/tmp", "run-test-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	sleep, err := exec.LookPath("sleep")
	must.OK(t, err)
	for from, to := range map[string]string{"/proc/self/exe": "test", sleep: "hidden"} {
		program, err := os.ReadFile(from)
		must.OK(t, errors.Join(err, os.WriteFile(filepath.Join(dir, to), program, 0o755)))
	}
	must.OK(t, errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "hidden"), 0o711)))
	cmd.Path, cmd.Dir = "/bin/sh", "/"
	cmd.Args = append([]string{"sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" "$@"`,
		filepath.Join(dir, "test")}, cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, hiddenVar+"="+filepath.Join(dir, "hidden"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
}
