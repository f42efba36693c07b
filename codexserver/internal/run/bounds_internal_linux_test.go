package run

import (
	"bytes"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrders sends orders and reads them, and has some that no launcher can follow.
func TestOrders(t *testing.T) {
	cmd := &exec.Cmd{Path: "/bin/x", Args: []string{"x", "", "a\nb\xff"}, Env: []string{"A=", "B=c"}}
	message, err := Order{Cmd: cmd, Confinement: "c", Files: []*os.File{os.Stdin}}.message()
	got, readErr := readOrder(bytes.NewReader(message))
	if want := (ordered{"/bin/x", "c", 1, cmd.Args, cmd.Env}); err != nil || readErr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, %v", got, err, readErr)
	}
	for name, o := range map[string]Order{
		"attribute":   {Cmd: &exec.Cmd{Args: []string{"x"}, SysProcAttr: &syscall.SysProcAttr{Chroot: "/"}}},
		"descriptors": {Cmd: &exec.Cmd{Args: []string{"x"}, ExtraFiles: []*os.File{os.Stdin}}},
		"stream":      {Cmd: &exec.Cmd{Args: []string{"x"}, Stdin: strings.NewReader("")}},
		"no word":     {Cmd: &exec.Cmd{}},
		"NUL":         {Cmd: &exec.Cmd{Args: []string{"x"}, Env: []string{"A=\x00"}}},
		"too long":    {Cmd: &exec.Cmd{Args: []string{strings.Repeat("x", 64<<20)}}},
	} {
		if _, err := o.message(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for text, want := range map[string]string{
		"\x00\x00\x00\x00": "too short", "\x00\x00\x00\x07/x\x00\x000\x001": "too few words", "\x00\x00\x00\x08/x\x00\x00-1\x000": "too few words",
		"\x00\x00\x00\x08/x\x00\x000\x00-1": "too few words", "\x00\x00\x00\x07/x\x00\x00x\x000": "invalid", "\x04\x00\x00\x01": "at most 67108864 are allowed", "\x00\x00": "EOF",
	} {
		if _, err := readOrder(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestDescendants finds the live ones, also below dead ones, and none twice if parents form a ring.
func TestDescendants(t *testing.T) {
	var all []entry
	for _, p := range []struct {
		pid, parent int
		dead        bool
	}{{2, 1, false}, {3, 2, false}, {4, 3, true}, {5, 4, false}, {6, 1, false}, {7, 5, true}, {2, 5, false}} {
		all = append(all, entry{identity: identity{PID: p.pid}, Parent: p.parent, Dead: p.dead})
	}
	for root, want := range map[int][]int{1: {2, 6, 3, 5}, 2: {3, 5}, 3: {5, 2}, 6: nil} {
		var got []int
		for _, p := range descendants(all, root) {
			got = append(got, p.PID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d: %v, want %v", root, got, want)
		}
	}
}

// TestSealDescriptors checks that no command inherits what this process has open, also where the call
// for all descriptors is missing or forbidden.
func TestSealDescriptors(t *testing.T) {
	for name, seal := range map[string]func() error{"at once": SealDescriptors, "each": sealEach} {
		fd, err := unix.Dup(1)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		high, err := unix.FcntlInt(1, unix.F_DUPFD, 900)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(high)
		if err := seal(); err != nil {
			t.Fatal(err)
		}
		for fd, want := range map[int]int{fd: unix.FD_CLOEXEC, high: unix.FD_CLOEXEC, 1: 0, 2: 0} {
			if got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || got != want {
				t.Errorf("%s: descriptor %d has the flags %d, %v", name, fd, got, err)
			}
		}
	}
}

// TestExitError checks the words for how a process ended.
func TestExitError(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]string{0x300: "exit status 3", 9: "signal: killed", 0x8b: "signal: segmentation fault"} {
		if got := (&ExitError{status}).Error(); got != want {
			t.Errorf("%x: %q, want %q", int(status), got, want)
		}
	}
}

// TestParse reads a process whose name looks like the end of the name and another state.
func TestParse(t *testing.T) {
	const rest = " 7 8 7 0 -1 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0"
	for line, want := range map[string]entry{
		"5 (sh) S 4" + rest:         {identity: identity{PID: 5, Start: 99}, Parent: 4, Session: 8},
		"5 (a) Z 1 (b) R 4" + rest:  {identity: identity{PID: 5, Start: 99}, Parent: 4, Session: 8},
		"5 () Z 4" + rest:           {identity: identity{PID: 5, Start: 99}, Parent: 4, Session: 8, Dead: true},
		"5 (sh) S 4 7 7 7 0 -1 0 0": {},
		"x (sh) S 4" + rest:         {},
		")5 (sh S 4" + rest:         {},
	} {
		if got, ok := parse([]byte(line)); ok != (want.PID != 0) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
