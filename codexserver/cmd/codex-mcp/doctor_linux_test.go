package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutLandlock is the variable that makes this program run the words of its command line as on a system that lacks something.
const withoutLandlock = "CODEX_MCP_TEST_WITHOUT_LANDLOCK"

func init() {
	if os.Getenv(withoutLandlock) == "" {
		return
	}
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	os.Unsetenv(withoutLandlock)
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	panic(err)
}

// TestDoctorWithoutLandlock has doctor on a system without Landlock say why no sandbox works.
func TestDoctorWithoutLandlock(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], built(t), "doctor", "--engine", "native")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+t.TempDir(), withoutLandlock+"=1")
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "the kernel has no Landlock, or it is switched off") {
		t.Errorf("%v\n%s", err, out)
	}
}
