package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestTroubleshootingSystem provokes texts of docs/use/troubleshooting.md that depend on the system.
func TestTroubleshootingSystem(t *testing.T) {
	doctor := []string{built(t), "doctor", "--engine", "native", "--verbose"}
	home := t.TempDir()
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	fail := func(err unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(err)}
	}
	for _, tt := range []struct {
		want   string
		filter []unix.SockFilter // of the calls, whose number is loaded
	}{
		{"the kernel has no Landlock, or it is switched off", []unix.SockFilter{
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
			fail(unix.ENOSYS), allow,
		}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			cmd := exec.Command(doctor[0], doctor[1:]...)
			cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
			out, err := filtered(cmd, tt.filter)
			if !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, want %q in\n%s", err, tt.want, out)
			}
		})
	}
}

// filtered runs a command as on a system that lacks something: a filter fails its system calls.
func filtered(cmd *exec.Cmd, filter []unix.SockFilter) (out []byte, err error) {
	run := func() {
		filter := append([]unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}, filter...) // the number of the call
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return
		}
		if err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
			return
		}
		out, err = cmd.CombinedOutput()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked: the thread ends with its filter
		if unix.Gettid() != unix.Getpid() {
			run()
			return
		}
		elsewhere := make(chan struct{}) // the main thread does not end, and its filter would be that of the process
		go func() {
			defer close(elsewhere)
			runtime.LockOSThread()
			run()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
	<-done
	return out, err
}

// newTerminal returns both ends of a terminal: that of the person, and that of programs.
func newTerminal(t *testing.T) (person, screen *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return person, screen
}

// TestGreeting starts the server at a terminal, where a person may wait for a prompt.
func TestGreeting(t *testing.T) {
	terminal, screen := newTerminal(t)
	cmd := exec.CommandContext(t.Context(), built(t), "--engine", "native")
	cmd.Env, cmd.Stdin = append(os.Environ(), "CODEX_HOME="+t.TempDir()), screen
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if want := "is an MCP server: it waits for a client's JSON-RPC messages"; !strings.Contains(line, want) {
		t.Errorf("%q, %v; want %q", line, err, want)
	}
	if _, err := terminal.WriteString("\x04"); err != nil { // the end of the input
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
