package run

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestOrders reads orders as they are sent, and some that no launcher can follow.
func TestOrders(t *testing.T) {
	number := func(words ...string) []string {
		for i, word := range words {
			words[i] = fmt.Sprintf("%d=%s", i, word)
		}
		return append([]string{"GOGC=off"}, words...)
	}
	want := order{confinement: "c", path: "/bin/x", args: []string{"x", "", "a\nb\xff"}, env: []string{"A=", "B=c", "A=d"}}
	if got, err := readOrder(number(want.words()...)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, words := range [][]string{{}, {"", "/x"}, {"", "/x", "1"}, {"", "/x", "-1"}, {"", "/x", "x"}} {
		if got, err := readOrder(number(words...)); err == nil {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

// TestFirstReason has a launcher report several reasons why it ends its command, also after that.
func TestFirstReason(t *testing.T) {
	r, w, err := os.Pipe()
	must.OK(t, err)
	p := &Process{
		cmd: exec.Command("true"), begun: make(chan struct{}), exited: make(chan struct{}), gone: make(chan struct{}),
		hold: hold{server: r},
	}
	must.OK(t, p.cmd.Start())
	for _, r := range []report{
		{kind: reportStarted}, {kind: reportBroken, text: "first"}, {kind: reportBroken, text: "second"}, {kind: reportExited},
		{kind: reportGone}, {kind: reportBroken, text: "late"},
	} {
		r.send(w)
	}
	must.OK(t, w.Close())
	p.watch()
	must.Equal(t, "why", "first", p.broken.Error())
}

// TestDescendants finds the live ones, also below dead ones, and none twice if parents form a ring.
func TestDescendants(t *testing.T) {
	var all []process
	for _, p := range []struct {
		pid, parent int
		dead        bool
	}{{2, 1, false}, {3, 2, false}, {4, 3, true}, {5, 4, false}, {6, 1, false}, {7, 5, true}, {8, 9, false}, {9, 8, false}} {
		all = append(all, process{pid: p.pid, parent: p.parent, dead: p.dead})
	}
	for root, want := range map[int][]int{1: {2, 3, 5, 6}, 3: {5}, 6: nil, 8: {8, 9}} {
		var got []int
		for _, p := range descendants(all, func(p process) bool { return p.parent == root }) {
			got = append(got, p.pid)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d: %v, want %v", root, got, want)
		}
	}
}

// TestSealDescriptors checks that no command inherits what this process has open.
func TestSealDescriptors(t *testing.T) {
	fd := must.Get(unix.FcntlInt(1, unix.F_DUPFD, 900))(t)
	defer unix.Close(fd)
	must.OK(t, SealDescriptors())
	for fd, want := range map[int]int{fd: unix.FD_CLOEXEC, 1: 0, 2: 0} {
		if got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || got != want {
			t.Errorf("descriptor %d has the flags %d, %v", fd, got, err)
		}
	}
}

// TestExitError checks the words for how a process ended.
func TestExitError(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]string{0x300: "exit status 3", 9: "signal: killed", 0x8b: "signal: segmentation fault"} {
		must.Equal(t, fmt.Sprintf("%x", int(status)), want, (&ExitError{status}).Error())
	}
}

// TestParse reads a process whose name looks like the end of the name and another state.
func TestParse(t *testing.T) {
	const rest = " 7 8 7 0 -1 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0"
	for line, want := range map[string]process{
		"5 (sh) S 4" + rest: {5, 4, 8, 99, false}, "5 (a) Z 1 (b) R 4" + rest: {5, 4, 8, 99, false}, "5 () Z 4" + rest: {5, 4, 8, 99, true},
		"5 (sh) S 4 7 7 7 0 -1 0 0": {}, "5 (sh) S x" + rest: {}, "": {},
	} {
		if got, ok := parse(5, line); ok != (want.pid != 0) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
