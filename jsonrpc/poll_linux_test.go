package jsonrpc

import (
	"bytes"
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// opened are two ends of what the standard input and output may be.
func opened(t *testing.T, kind string) (r, w *os.File) {
	t.Helper()
	var err error
	switch kind {
	case "pipe":
		r, w, err = os.Pipe()
	case "blocking pipe":
		var fds [2]int
		err = syscall.Pipe2(fds[:], syscall.O_CLOEXEC)
		r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	case "socket":
		var fds [2]int
		fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	case "file":
		path := filepath.Join(t.TempDir(), "file")
		w, err = os.Create(path)
		if err == nil {
			r, err = os.Open(path)
		}
	}
	must.OK(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// promptOne reports whether l has written m.
func promptOne(l *lines, m []byte) (bool, error) {
	n, err := l.prompt([][]byte{m})
	return n == 1, err
}

// TestPrompt fills a descriptor with messages that are written only if that does not block. Each arrives
// whole or not at all, and there is room again after a read.
func TestPrompt(t *testing.T) {
	for _, kind := range []string{"pipe", "blocking pipe", "socket", "socket through the poller"} {
		for _, size := range []int{1, 1000, promptBytes - 1} {
			r, f := opened(t, strings.TrimSuffix(kind, " through the poller"))
			var w io.WriteCloser = f
			if strings.HasSuffix(kind, "poller") {
				c := must.Get(net.FileConn(f))(t)
				w = c
				_ = f.Close()
			}
			l := Lines(nil, w, nil).(*lines)
			if !l.prompts() || l.ready.atomic != (kind == "pipe") {
				t.Errorf("%s: prompts %t", kind, l.prompts())
			}
			if sent, err := promptOne(l, make([]byte, promptBytes)); sent || err != nil {
				t.Errorf("%s: a long message: %t, %v", kind, sent, err)
			}
			m := bytes.Repeat([]byte("x"), size)
			for range 2 {
				n := 0
				for {
					sent, err := promptOne(l, m)
					if err != nil {
						t.Fatalf("%s: %v", kind, err)
					}
					if !sent {
						break
					}
					n++
				}
				if n == 0 {
					t.Errorf("%s: there is no room for %d bytes", kind, size)
				}
				got := make([]byte, n*(size+1))
				if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, bytes.Repeat(append(m, '\n'), n)) {
					t.Errorf("%s: %d messages of %d bytes do not arrive: %v", kind, n, size, err)
				}
			}
			if sent, err := promptOne(l, m); !sent || err != nil {
				t.Errorf("%s: there is no room after the reads: %t, %v", kind, sent, err)
			}
			// Of several messages as many are written as fit at once.
			many := slices.Repeat([][]byte{m}, promptBytes/(size+1)+2)
			n, err := l.prompt(many)
			must.OK(t, err)
			must.Equal(t, "of many at once", promptBytes/(size+1), n)
			_, again := opened(t, strings.TrimSuffix(kind, " through the poller"))
			closed := Lines(nil, again, nil).(*lines)
			if sent, err := promptOne(closed, m); !sent || err != nil {
				t.Errorf("%s: before Close: %t, %v", kind, sent, err)
			}
			_ = again.Close()
			if sent, _ := promptOne(closed, m); sent {
				t.Errorf("%s: written after Close", kind)
			}
			_ = r.Close()
			if sent, err := promptOne(l, m); sent || l.ready.atomic && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s: written to nobody: %t, %v", kind, sent, err)
			}
			_ = w.Close()
			if sent, err := promptOne(l, m); sent || l.ready.atomic && err == nil {
				t.Errorf("%s: written after Close: %t, %v", kind, sent, err)
			}
			if Lines(nil, w, nil).(*lines).prompts() {
				t.Errorf("%s: it prompts although it is closed", kind)
			}
		}
	}
	if Lines(nil, new(bytes.Buffer), nil).(*lines).prompts() {
		t.Error("a buffer prompts")
	}
}

// TestPolled checks which descriptors are written through the runtime's poller.
func TestPolled(t *testing.T) {
	for kind, want := range map[string]bool{"pipe": true, "blocking pipe": true, "socket": true, "file": false} {
		_, w := opened(t, kind)
		p, ok := polled(w)
		if ok != want {
			t.Errorf("%s is polled: %t", kind, ok)
		}
		if ok {
			_ = p.Close()
		}
		_ = w.Close()
		if _, ok := polled(w); ok || nonBlocking(w) {
			t.Errorf("%s is open after Close", kind)
		}
	}
}

// TestStoppable checks that input of every kind is read to its end, also when another process has set
// non-blocking mode, and that Close ends a Read that waits and every later one.
func TestStoppable(t *testing.T) {
	for _, kind := range []string{"pipe", "blocking pipe", "socket", "file"} {
		r, w := opened(t, kind)
		s, ok := newStoppable(r)
		if !ok {
			t.Fatalf("%s is not stoppable", kind)
		}
		if _, err := w.WriteString("in"); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if got, err := io.ReadAll(s); string(got) != "in" || err != nil {
			t.Errorf("%s: read %q, %v", kind, got, err)
		}
		r, w = opened(t, kind)
		l := Lines(r, nil, nil).(*lines)
		if own := kind != "pipe"; (l.own != nil) != own {
			t.Errorf("%s: Lines has a Close of its own: %t", kind, !own)
		}
		if l.own == nil {
			continue
		}
		ended := make(chan error, 1)
		if kind != "file" { // which never waits
			go func() {
				_, err := l.Read(t.Context())
				ended <- err
			}()
		}
		must.OK(t, l.Close())
		if kind != "file" {
			if err := <-ended; !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: a Read ends with %v", kind, err)
			}
		}
		if _, err := w.WriteString("late"); err != nil {
			t.Error(err)
		}
		if n, err := l.r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: read after Close: %d, %v", kind, n, err)
		}
		_ = r.Close()
		if _, ok := newStoppable(r); ok {
			t.Errorf("%s is stoppable after Close", kind)
		}
	}
}

// TestCloseWhileReading closes a pipe while a Read begins, waits, or gets something: it ends. What Close writes stays in the
// pipe only if the Read took something else, and a full pipe stops nobody.
func TestCloseWhileReading(t *testing.T) {
	const full = 64 << 10
	for round := range 600 {
		r, w := opened(t, "blocking pipe")
		in, ok := newStoppable(r)
		if !ok {
			t.Fatal("a pipe is not stoppable")
		}
		sent := []int{0, 1, full}[round%3]
		must.Get(w.Write(make([]byte, sent)))(t)
		took := make(chan int, 1)
		go func() {
			n, err := in.Read(make([]byte, 10))
			for err == nil {
				n, err = in.Read(make([]byte, 10))
			}
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("a Read ends with %v", err)
			}
			took <- n
		}()
		if round%2 == 0 {
			for sent < full && !in.(*stoppable).reading.Load() {
				runtime.Gosched()
			}
		}
		must.OK(t, in.Close())
		if n := <-took; n != 0 {
			t.Fatalf("a Read that Close ended took %d bytes", n)
		}
		_ = w.Close()
		left := must.Get(io.ReadAll(r))(t)
		if rest := bytes.TrimRight(left, "\n"); len(left)-len(rest) > 1 || !bytes.Equal(rest, make([]byte, len(rest))) {
			t.Fatalf("%q is left of %d bytes", left, sent)
		}
		_ = r.Close()
	}
}

// TestCommandSettings checks what Command sets of a command, and that it keeps what its caller has
// set. /bin/true runs in the session that the caller wants: it could not be started in a group of its own.
func TestCommandSettings(t *testing.T) {
	const second = time.Second
	for name, tt := range map[string]struct {
		grace, delay         time.Duration
		attr                 *syscall.SysProcAttr
		wantGrace, wantDelay time.Duration
		wantAttr             syscall.SysProcAttr
	}{
		"nothing":   {wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a grace":   {grace: second, wantGrace: second, wantDelay: second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a delay":   {delay: 3 * second, wantGrace: 2 * second, wantDelay: 3 * second, wantAttr: syscall.SysProcAttr{Setpgid: true}},
		"a signal":  {attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}},
		"a session": {attr: &syscall.SysProcAttr{Setsid: true}, wantGrace: 2 * second, wantDelay: 2 * second, wantAttr: syscall.SysProcAttr{Setsid: true}},
	} {
		cmd := exec.Command("true")
		cmd.WaitDelay, cmd.SysProcAttr = tt.delay, tt.attr
		tr, err := Command(cmd, tt.grace)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := tr.(*lines).c.(*child)
		if c.grace != tt.wantGrace || cmd.WaitDelay != tt.wantDelay {
			t.Errorf("%s: a grace of %v and a delay of %v", name, c.grace, cmd.WaitDelay)
		}
		if got, want := *cmd.SysProcAttr, tt.wantAttr; got.Setpgid != want.Setpgid || got.Setsid != want.Setsid || got.Pdeathsig != want.Pdeathsig {
			t.Errorf("%s: the child starts with %+v", name, got)
		}
		if err := tr.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
