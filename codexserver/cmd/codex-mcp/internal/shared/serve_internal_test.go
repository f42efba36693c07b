//go:build linux || darwin

package shared

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newServer returns a server with a socket, whose connections the test makes itself.
func newServer(t *testing.T, serve func(left func())) (*Server, *net.UnixListener) {
	t.Helper()
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.socket("x"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	l.SetUnlinkOnClose(false)
	s := &Server{
		Folder: f, Name: "x", Version: "1", Working: func() int { return 0 }, About: "a test", Traits: map[string]string{"key": "sum"}, Logger: slog.New(slog.DiscardHandler),
		Serve: func(_ context.Context, c io.ReadWriteCloser, _ Origin, left func()) {
			serve(left)
			_ = c.Close()
		},
	}
	s.load.changed = make(chan struct{}, 1)
	if s.socket, err = os.Lstat(f.socket("x")); err != nil {
		t.Fatal(err)
	}
	return s, l
}

// client makes a connection and serves it, and returns the reply of the server.
func client(t *testing.T, s *Server, l *net.UnixListener, version string) (r reply) {
	c, err := net.Dial("unix", s.Folder.socket("x"))
	if err != nil {
		t.Error(err)
		return r
	}
	defer c.Close()
	raw, err := l.AcceptUnix()
	if err != nil {
		t.Error(err)
		return r
	}
	s.serve(t.Context(), &Conn{UnixConn: raw}, &hello{Version: version}, func() bool { return true })
	if err := readFrame(bufio.NewReader(c), &r); err != nil {
		t.Error(err)
	}
	return r
}

// TestLoad serves many clients at the same time, of which each asks what the server does.
func TestLoad(t *testing.T) {
	var s *Server
	s, l := newServer(t, func(left func()) {
		if got := s.status(); len(got.Clients) < 1 || got.Clients[0].Since.IsZero() || got.About != "a test" || got.Traits["key"] != "sum" || got.PID != os.Getpid() {
			t.Errorf("status %+v", got)
		}
		if s.lost() {
			t.Error("lost with a client")
		}
		left()
		left() // counts once
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r := client(t, s, l, "1"); r.Ended {
				t.Error("refused")
			}
		})
	}
	all.Wait()
	if got := s.status(); len(got.Clients) != 0 || s.load.served != 0 || got.Retired {
		t.Errorf("afterwards: %+v, %d served", got, s.load.served)
	}
}

// TestLoadInPairs enters while another goroutine does one thing: of many, the race detector remembers few.
func TestLoadInPairs(t *testing.T) {
	for name, does := range map[string]func(*Server, *net.UnixListener){
		"enter":  func(s *Server, _ *net.UnixListener) { s.enter(&Client{}) },
		"status": func(s *Server, _ *net.UnixListener) { s.status() },
		"lost":   func(s *Server, _ *net.UnixListener) { s.lost() },
		"retire": func(s *Server, _ *net.UnixListener) {
			s.retireIf(t.Context(), func() bool { return s.load.served < 0 })
		},
		"serve": func(s *Server, l *net.UnixListener) { client(t, s, l, "1") },
	} {
		s, l := newServer(t, func(left func()) { left() })
		var both sync.WaitGroup
		both.Go(func() {
			for range 20 {
				s.enter(&Client{})
			}
		})
		both.Go(func() {
			for range 20 {
				does(s, l)
			}
		})
		both.Wait()
		if got := s.status(); len(got.Clients) != map[string]int{"enter": 40}[name] && len(got.Clients) != 20 || got.Retired {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRetire lets a server make way: for a client of another version if it has no work.
func TestRetire(t *testing.T) {
	working := 1
	s, l := newServer(t, func(func()) {})
	s.Working = func() int { return working }
	if r := client(t, s, l, "2"); r.Ended {
		t.Error("a server with work makes way")
	}
	if s.retireIf(t.Context(), func() bool { return false }) {
		t.Error("it retires although it must not")
	}
	working = 0
	if r := client(t, s, l, "1"); r.Ended {
		t.Error("it makes way for its own version")
	}
	if s.lost() {
		t.Error("lost, although its socket is there")
	}
	if err := os.Rename(s.Folder.socket("x"), s.Folder.socket("y")); err != nil {
		t.Fatal(err)
	}
	if !s.lost() {
		t.Error("not lost without its socket")
	}
	if err := os.WriteFile(s.Folder.socket("x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !s.lost() {
		t.Error("not lost with another file in place of its socket")
	}
	if err := os.Rename(s.Folder.socket("y"), s.Folder.socket("x")); err != nil {
		t.Fatal(err)
	}
	if r := client(t, s, l, "2"); !r.Ended {
		t.Error("it does not make way for another version")
	}
	if _, err := os.Lstat(s.Folder.socket("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if s.enter(&Client{}) || !s.status().Retired || s.lost() || !s.retireIf(t.Context(), func() bool { return false }) {
		t.Errorf("after that: %+v, lost %t", s.status(), s.lost())
	}
}

func TestFrames(t *testing.T) {
	const most = 16 << 20
	long := func(n int) string { return `{"refused":"` + strings.Repeat("x", n-len(`{"refused":""}`)-1) + "\"}\n" }
	for name, tt := range map[string]struct {
		text string
		want string // of the error
	}{
		"short":           {`{"ended":true}` + "\nmore", ""},
		"as long as may":  {long(most), ""},
		"too long":        {long(most + 1), "too long"},
		"no JSON":         {"x\n", "handshake: "},
		"another type":    {`{"ended":1}` + "\n", "handshake: "},
		"without its end": {`{"ended":true}`, "EOF"},
	} {
		var r reply
		err := readFrame(bufio.NewReader(strings.NewReader(tt.text)), &r)
		if tt.want == "" && (err != nil || !r.Ended && r.Refused == "") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	var b bytes.Buffer
	if err := writeFrame(&b, &reply{Ended: true}); err != nil || b.String() != `{"ended":true}`+"\n" {
		t.Errorf("wrote %q, %v", &b, err)
	}
}

// TestUnanswered counts requests, of both directions at the same time.
func TestUnanswered(t *testing.T) {
	var u unanswered
	for _, line := range []string{
		`{"id":1,"method":"x"}`, `{"id":"a","method":"x"}`, `{"id":2,"method":"x"}`, `{"id":3,"method":"x"}`, `{"method":"n"}`, `{"id":4,"result":{}}`, `{"id":{},"method":"x"}`,
		`{"method":"notifications/cancelled","params":{"requestId":3}}`,
	} {
		u.sent([]byte(line))
	}
	for _, line := range []string{`{"id":2,"result":{}}`, `{"id":1,"method":"elicitation/create"}`, `{"id":"b","error":{}}`, `{"method":"n"}`} {
		u.received([]byte(line))
	}
	if diff := cmp.Diff(`["a" 1]`, fmt.Sprint(u.all())); diff != "" {
		t.Error(diff)
	}
	var both sync.WaitGroup
	both.Go(func() {
		for i := range 100 {
			u.sent(fmt.Appendf(nil, `{"id":%d,"method":"x"}`, i))
		}
	})
	both.Go(func() {
		for i := range 100 {
			u.received(fmt.Appendf(nil, `{"id":%d,"result":1}`, 1000+i))
		}
	})
	both.Go(func() {
		for range 100 {
			u.all()
		}
	})
	both.Wait()
	if got := len(u.all()); got != 101 {
		t.Errorf("%d requests are open", got)
	}
}
