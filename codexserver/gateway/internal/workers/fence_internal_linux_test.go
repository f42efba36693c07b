package workers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"golang.org/x/sys/unix"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = time.Minute

// ownerName is the name of a process that has a fence, as the gateway has.
const ownerName = "fence-owner"

func TestMain(m *testing.M) {
	enclosure.Main()
	switch os.Args[0] {
	case FenceName:
		if err := RunFence(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case ownerName:
		if err := ownFence(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// ownFence fences the process whose id is in standard input, and prints a line. Then it does
// nothing.
func ownFence() error {
	var pid int
	var left time.Duration
	if _, err := fmt.Scan(&pid, &left); err != nil {
		return err
	}
	f, err := startFence(os.Stderr)
	if err != nil {
		return err
	}
	now, err := sinceBoot()
	if err == nil {
		_, err = f.add(pid, now+left)
	}
	if err != nil {
		return err
	}
	fmt.Println("fenced")
	select {}
}

// sinceBoot returns the time of the fence's clock.
func sinceBoot() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return time.Duration(now.Nano()), err
}

// sleeper is a process that only ends when it is killed.
type sleeper struct {
	t     *testing.T
	pid   int
	ended chan error
}

func newSleeper(t *testing.T) *sleeper {
	t.Helper()
	cmd := exec.Command("sleep", "1000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &sleeper{t, cmd.Process.Pid, make(chan error, 1)}
	go func() { s.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return s
}

// killed waits until the process was killed.
func (s *sleeper) killed(why string) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		if err == nil || err.Error() != "signal: killed" {
			s.t.Errorf("%s: the process ended with %v", why, err)
		}
	case <-time.After(patience):
		s.t.Fatalf("%s: the process is not killed", why)
	}
}

// runs checks that the process has not ended.
func (s *sleeper) runs(why string) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		s.t.Errorf("%s: the process ended with %v", why, err)
	default:
	}
}

// newFence starts a fence. passed is a deadline that has passed, and far one that will not.
func newFence(t *testing.T) (f *fence, passed, far time.Duration) {
	t.Helper()
	f, err := startFence(os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.kill()
		_ = f.close() // a test may have closed it
	})
	now, err := sinceBoot()
	if err != nil {
		t.Fatal(err)
	}
	return f, now, now + 10*patience
}

// TestFence checks that the fence kills a process after its latest deadline, and no other one.
func TestFence(t *testing.T) {
	f, passed, far := newFence(t)
	all := map[string]*sleeper{}
	numbers := map[string]uint64{}
	for _, name := range []string{"at once", "later", "forgotten", "left"} {
		all[name] = newSleeper(t)
		deadline := far
		if name == "at once" {
			deadline = passed
		}
		var err error
		if numbers[name], err = f.add(all[name].pid, deadline); err != nil {
			t.Fatal(err)
		}
	}
	extend := func(name string, deadline time.Duration) {
		t.Helper()
		if err := f.extend(numbers[name], deadline); err != nil {
			t.Fatal(err)
		}
	}
	all["at once"].killed("its deadline has passed")
	for _, name := range []string{"later", "forgotten", "left"} {
		all[name].runs("its deadline is far")
	}
	extend("forgotten", 0)
	extend("forgotten", passed) // the fence does not know it any more
	extend("at once", far)      // nor this one
	extend("left", far+time.Second)
	extend("later", passed)
	all["later"].killed("its deadline was changed")
	all["left"].runs("the deadline of another one has passed")
	if err := f.close(); err != nil {
		t.Errorf("the fence ends with %v", err)
	}
	all["left"].killed("the fence was closed")
	all["forgotten"].runs("it was forgotten")
}

// TestFenceOfAStoppedOwner checks that the fence kills a process in time although the process
// that has fenced it is stopped, and at once when that process was killed.
func TestFenceOfAStoppedOwner(t *testing.T) {
	for _, tt := range []struct {
		sig  syscall.Signal
		left time.Duration
	}{{syscall.SIGSTOP, time.Second}, {syscall.SIGKILL, 10 * patience}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			s := newSleeper(t)
			owner := &exec.Cmd{Path: "/proc/self/exe", Args: []string{ownerName}, Stdin: strings.NewReader(fmt.Sprintln(s.pid, int64(tt.left))), Stderr: os.Stderr}
			out, err := owner.StdoutPipe()
			if err == nil {
				err = owner.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = owner.Process.Kill()
				_ = owner.Wait()
			})
			line := make([]byte, len("fenced\n"))
			if _, err := io.ReadFull(out, line); err != nil {
				t.Fatal(err)
			}
			if err := owner.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			s.killed("its owner got " + tt.sig.String())
			if tt.sig != syscall.SIGSTOP {
				return
			}
			text, err := os.ReadFile("/proc/" + strconv.Itoa(owner.Process.Pid) + "/stat")
			if err != nil || !bytes.Contains(text, []byte(") T ")) {
				t.Errorf("the owner is not stopped: %s, %v", text, err)
			}
		})
	}
}

// TestFenceGetsNonsense checks that a fence that cannot go on kills its processes.
func TestFenceGetsNonsense(t *testing.T) {
	f, _, far := newFence(t)
	s := newSleeper(t)
	if _, err := f.add(s.pid, far); err != nil {
		t.Fatal(err)
	}
	if _, err := f.conn.Write([]byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	s.killed("the fence has ended")
	if err := f.close(); err == nil {
		t.Error("the fence reports no error")
	}
}

// fencedPool returns a pool for ann and bob with a fence.
func fencedPool(t *testing.T, f *fence) *Pool {
	t.Helper()
	p := newPool(Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}, "bob": {}}}, Stderr: os.Stderr, Logger: slog.New(slog.DiscardHandler)})
	p.fence = f
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestPoolWithoutFence checks that a worker is killed whose fence has ended, and that the next
// worker gets another fence.
func TestPoolWithoutFence(t *testing.T) {
	f, passed, far := newFence(t)
	p := fencedPool(t, f)
	p.Extend("ann", far)
	p.Extend("bob", far)
	p.Extend("nobody", far)
	first := newSleeper(t)
	w := newFakeWorker(p)
	killed := 0
	w.kill = func() error { killed++; return syscall.Kill(first.pid, syscall.SIGKILL) }
	var err error
	if w.process.fence, w.fenced, err = p.addToFence("ann", first.pid); err != nil {
		t.Fatal(err)
	}
	p.slots["ann"].worker = w.process
	p.Extend("ann", far)
	p.Extend("bob", passed) // another user
	if first.runs("it has time"); killed > 0 {
		t.Error("the worker is killed while its fence runs")
	}
	f.kill()
	if err := f.cmd.Wait(); err == nil {
		t.Error("the fence was not killed")
	}
	first.runs("nobody extended it")
	p.Extend("ann", far)
	if first.killed("its fence has ended"); killed != 1 {
		t.Errorf("the worker was killed %d times", killed)
	}
	p.Extend("bob", far)
	second := newSleeper(t)
	other, number, err := p.addToFence("bob", second.pid)
	if err != nil || other == f || p.fence != other {
		t.Fatalf("the next fence: %v, %v", other == f, err)
	}
	second.runs("it has time")
	if err := other.extend(number, passed); err != nil {
		t.Fatal(err)
	}
	second.killed("its deadline has passed")
}

// TestDeadlineAtTheStart checks that a worker gets the deadline that its user has when it starts,
// and one that came meanwhile.
func TestDeadlineAtTheStart(t *testing.T) {
	f, passed, far := newFence(t)
	p := fencedPool(t, f)
	p.Extend("ann", passed)
	early := newSleeper(t)
	if _, _, err := p.addToFence("ann", early.pid); err != nil {
		t.Fatal(err)
	}
	early.killed("the lease ended before the worker began")
	p.Extend("ann", far)
	s := newSleeper(t)
	a := &attempt{done: make(chan struct{}), cancel: func() {}}
	p.start = func(ctx context.Context, name string) (*process, error) {
		w := newFakeWorker(p)
		var err error
		w.process.fence, w.fenced, err = p.addToFence(name, s.pid)
		p.Extend(name, passed) // the pool does not have the worker yet
		return w.process, err
	}
	p.slots["ann"].attempt = a
	p.fill(t.Context(), "ann", p.slots["ann"], a)
	s.killed("its deadline was changed while it started")
}
