package testenv

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Namespace runs the test again, in a process with a user and mount namespace of its own, and reports whether this is that
// process. The test is skipped where there are no such namespaces.
func Namespace(t *testing.T) bool {
	t.Helper()
	const child = "TESTENV_TEST_NAMESPACE"
	if os.Getenv(child) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	for _, missing := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL} {
		if errors.Is(err, missing) || bytes.Contains(out, []byte("--- SKIP")) {
			t.Skipf("no user namespaces: %v %s", err, out)
		}
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
