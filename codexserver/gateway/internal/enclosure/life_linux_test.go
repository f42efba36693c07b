//go:build amd64 || arm64

package enclosure_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = time.Minute

// sinceBoot returns the time of the clock of a life.
func sinceBoot(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	must.OK(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return time.Duration(now.Nano())
}

// living starts an enclosure with a life. All processes in it have a pipe: it has ended when none of them is left. The
// commands in it try to reach the first process, and say then that they have begun.
func living(t *testing.T, deadline time.Duration) (life *enclosure.Life, begun, ended <-chan struct{}) {
	t.Helper()
	e := newRooms(t)
	life = must.Get(enclosure.NewLife(deadline))(t)
	e.Life = life
	out, in, err := os.Pipe()
	must.OK(t, err)
	cmd := shell(`trap "" TERM HUP INT; kill -9 1; kill -STOP 1
ls /proc/self/fd/4 /proc/self/fd/5 /proc/1/fd/4 && exit
setsid sleep 1000000 & echo begun; wait`)
	cmd.Dir, cmd.Stdout = e.own, in
	must.OK(t, e.Start(cmd))
	in.Close()
	said, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		lines := bufio.NewReader(out)
		if line, _ := lines.ReadString('\n'); line == "begun\n" {
			close(said)
		}
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // killed
	}()
	t.Cleanup(func() {
		_ = life.Close() // the test may have closed it
		<-closed
		out.Close()
	})
	return life, said, closed
}

// TestLife checks that an enclosure ends with its latest deadline, and with its life, although what runs in it does not
// want to, and not earlier.
func TestLife(t *testing.T) {
	enclosuretest.Need(t)
	now := sinceBoot(t)
	far := now + 10*patience
	for name, tt := range map[string]struct {
		first time.Duration
		then  func(*enclosure.Life) error // nil if the first deadline has passed
	}{
		"it has passed":   {1, nil},
		"there is none":   {0, nil},
		"it is changed":   {far, func(l *enclosure.Life) error { return l.Extend(now) }},
		"the life closes": {far, (*enclosure.Life).Close},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life, begun, ended := living(t, tt.first)
			if tt.then != nil {
				must.OK(t, life.Extend(far+time.Second))
				select {
				case <-begun:
				case <-ended:
					t.Error("it ends although its deadline is far")
				}
				must.OK(t, tt.then(life))
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the enclosure goes on")
			}
			if err := life.Close(); err == nil && life.Extend(far) == nil {
				t.Error("a closed life is extended")
			}
		})
	}
}

// makerOf tells a process of [TestLifeOfAStoppedMaker] how long the enclosure may last that it makes.
const makerOf = "ENCLOSURE_MAKER"

// TestLifeOfAStoppedMaker checks that an enclosure ends in time although the process that has made it is stopped, and
// at once when that process is killed.
func TestLifeOfAStoppedMaker(t *testing.T) {
	if left, err := time.ParseDuration(os.Getenv(makerOf)); err == nil {
		life, begun, _ := living(t, sinceBoot(t)+10*patience)
		<-begun
		must.OK(t, life.Extend(sinceBoot(t)+left))
		fmt.Println("begun")
		select {}
	}
	enclosuretest.Need(t)
	for _, tt := range []struct {
		sig  syscall.Signal
		left time.Duration
	}{{syscall.SIGSTOP, time.Second}, {syscall.SIGKILL, 10 * patience}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			maker := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()[:strings.Index(t.Name(), "/")]+"$")
			maker.Env = append(os.Environ(), makerOf+"="+tt.left.String())
			maker.Stderr = os.Stderr
			out := must.Get(maker.StdoutPipe())(t)
			must.OK(t, maker.Start())
			t.Cleanup(func() {
				_ = maker.Process.Kill()
				_ = maker.Wait()
			})
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
				t.Fatalf("the maker says %q, %v", line, err)
			}
			text, err := exec.Command("pgrep", "-P", fmt.Sprint(maker.Process.Pid)).Output()
			first := strings.TrimSpace(string(text))
			if err != nil || strings.Contains(first, "\n") {
				t.Fatalf("the enclosures %q, %v", first, err)
			}
			must.OK(t, maker.Process.Signal(tt.sig))
			for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
				if text, err := os.ReadFile("/proc/" + first + "/stat"); err != nil || strings.Contains(string(text), ") Z ") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the enclosure goes on")
				}
			}
		})
	}
}
