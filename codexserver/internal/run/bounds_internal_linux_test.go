package run

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newKeeper returns a keeper without a process, in the pool, and the other end of its link.
func newKeeper(t *testing.T, p *Pool) (*keeper, *link) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*link
	for i, fd := range fds {
		if ends[i], err = linkOf(fd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].conn.Close() })
	}
	k := &keeper{link: ends[0], leaving: make(chan struct{}), ended: make(chan struct{})}
	close(k.ended)
	if p.all == nil {
		p.all = map[*keeper]bool{}
	}
	p.all[k] = true
	return k, ends[1]
}

// TestPoolKeepsFew gives keepers back, at the same time and one more than the pool keeps.
func TestPoolKeepsFew(t *testing.T) {
	var p Pool
	var all []*keeper
	for range 5 {
		k, _ := newKeeper(t, &p)
		all = append(all, k)
	}
	for i, k := range all {
		if p.put(k); isClosed(k.leaving) != (i == 4) {
			t.Errorf("keeper %d leaves: %t", i, isClosed(k.leaving))
		}
	}
	if len(p.idle) != 4 || len(p.all) != 4 {
		t.Fatalf("%d of %d keepers are idle", len(p.idle), len(p.all))
	}
	p.discard(all[4]) // again
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for range 10 {
				k, fresh, err := p.take()
				if err != nil || fresh {
					t.Error(fresh, err)
					return
				}
				p.put(k)
			}
			if k, _, err := p.take(); i > 1 && err == nil {
				p.discard(k)
			} else if err == nil {
				p.put(k)
			}
		})
	}
	work.Wait()
	if len(p.idle) != 2 || len(p.all) != 2 {
		t.Errorf("%d of %d keepers are idle", len(p.idle), len(p.all))
	}
	last, _, _ := p.take()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := p.take(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	p.put(last)
	if len(p.idle) != 0 || !isClosed(last.leaving) {
		t.Error("a closed pool keeps a keeper")
	}
}

// TestReleasedKeeper asks a command to end that gives its keeper back meanwhile: the next command of
// the keeper hears nothing of it.
func TestReleasedKeeper(t *testing.T) {
	var pool Pool
	k, theirs := newKeeper(t, &pool)
	p := &Process{pool: &pool, keeper: k, exited: make(chan struct{}), gone: make(chan struct{})}
	p.Terminate()
	var r request
	if _, err := theirs.receive(&r); err != nil || !r.Terminate {
		t.Errorf("%+v, %v", r, err)
	}
	var work sync.WaitGroup
	work.Go(p.Terminate)
	work.Go(p.release)
	work.Wait()
	close(p.gone)
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p.Terminate()
	p.stop()
	k.conn.Close()
	for n := 0; ; n++ {
		if _, err := theirs.receive(&r); err != nil {
			if n > 1 || !errors.Is(err, io.EOF) {
				t.Errorf("%d requests of a command that is over, %v", n, err)
			}
			break
		}
	}
	p.failed = true
	if err := p.End(); !errors.Is(err, ErrLost) {
		t.Errorf("without a keeper: %v", err)
	}
}

// TestLeftoversAtTheSameTime adds the rests of commands from several goroutines.
func TestLeftoversAtTheSameTime(t *testing.T) {
	var left Leftovers
	rest := func(gone, silent bool) (*Process, *pipes) {
		p := &Process{over: true, exited: make(chan struct{}), gone: make(chan struct{})}
		output := &pipes{out: newCapture(nil), done: make(chan struct{})}
		if close(p.exited); gone {
			close(p.gone)
		}
		if silent {
			close(output.done)
		}
		return p, output
	}
	var kept []*Process
	var work sync.WaitGroup
	for i := range 8 {
		p, output := rest(i%4 == 0, i%2 == 0) // those that are gone and silent need not be kept
		if i%4 != 0 {
			kept = append(kept, p)
		}
		work.Go(func() {
			if !left.add(p, output) || !output.out.closed {
				t.Error("a rest is not taken, or its output not dropped")
			}
		})
	}
	work.Wait()
	if len(left.left) != len(kept) {
		t.Errorf("%d rests are kept, want %d", len(left.left), len(kept))
	}
	for _, l := range left.left {
		if !isClosed(l.gone) {
			close(l.gone)
		}
		if !isClosed(l.output.done) {
			close(l.output.done)
		}
	}
	left.Close()
	if p, output := rest(false, false); left.add(p, output) || output.out.closed {
		t.Error("taken after the end")
	}
	lost, output := rest(false, false)
	lost.lost = true
	if new(Leftovers).add(lost, output) {
		t.Error("the rest of a command was taken that cannot be found")
	}
}

// TestLinkBounds sends messages with as many files as may be, and one more, and receives lengths.
func TestLinkBounds(t *testing.T) {
	var p Pool
	k, theirs := newKeeper(t, &p)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := k.send(request{End: true}, slices.Repeat([]*os.File{null}, 200)...); err != nil {
		t.Fatal(err)
	}
	var r request
	files, err := theirs.receive(&r)
	closeAll(files)
	if err != nil || len(files) != 200 || !r.End {
		t.Errorf("%d files, %+v, %v", len(files), r, err)
	}
	if err := k.send(request{}, slices.Repeat([]*os.File{null}, 201)...); !errors.Is(err, unix.E2BIG) {
		t.Errorf("201 files: %v", err)
	}
	if err := k.send(strings.Repeat("x", 64<<20)); !errors.Is(err, unix.E2BIG) {
		t.Errorf("a long message: %v", err)
	}
	for size, want := range map[uint32]string{64<<20 + 1: "at most 67108864 are allowed", 64 << 20: "EOF", 0: "EOF"} {
		k, theirs := newKeeper(t, &p)
		if _, err := k.conn.Write(binary.BigEndian.AppendUint32(nil, size)); err != nil {
			t.Fatal(err)
		}
		k.conn.Close()
		if _, err := theirs.receive(&r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a length of %d: %v, want %s", size, err, want)
		}
	}
}

// TestOrders has orders that a keeper cannot follow.
func TestOrders(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, o := range []start{{Folder: true, Stdin: true}, {Extra: 1, Stdin: true}, {Extra: -1}} {
		if _, _, err := o.command([]*os.File{null}); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if cmd, rest, err := (start{Stdout: true}).command([]*os.File{null}); err != nil || cmd.Stdin != nil || cmd.Stdout != null || cmd.Stderr != nil || len(rest) > 0 {
		t.Errorf("%+v, %d, %v", cmd, len(rest), err)
	}
	cmd, rest, err := start{Stdin: true, Stderr: true, Extra: 1}.command([]*os.File{null, null, null, null})
	if err != nil || cmd.Stdin != null || cmd.Stdout != nil || cmd.Stderr != null || len(cmd.ExtraFiles) != 1 || len(rest) != 1 || cmd.Env == nil {
		t.Errorf("%+v, %d, %v", cmd, len(rest), err)
	}
	for name, o := range map[string]Order{
		"attribute": {Cmd: &exec.Cmd{Args: []string{"x"}, SysProcAttr: &syscall.SysProcAttr{Chroot: "/"}}},
		"stream":    {Cmd: &exec.Cmd{Args: []string{"x"}, Stdin: strings.NewReader("")}},
	} {
		if _, _, err := o.request(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if m := newMark(); m != 0 && (m < 1<<40 || m >= 1<<62) {
		t.Errorf("mark %v", m)
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
	const rest = " 7 7 7 0 -1 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0"
	for line, want := range map[string]entry{
		"5 (sh) S 4" + rest:         {identity: identity{PID: 5, Start: 99}, Parent: 4},
		"5 (a) Z 1 (b) R 4" + rest:  {identity: identity{PID: 5, Start: 99}, Parent: 4},
		"5 () Z 4" + rest:           {identity: identity{PID: 5, Start: 99}, Parent: 4, Dead: true},
		"5 (sh) S 4 7 7 7 0 -1 0 0": {},
		"x (sh) S 4" + rest:         {},
		")5 (sh S 4" + rest:         {},
	} {
		if got, ok := parse([]byte(line)); ok != (want.PID != 0) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
