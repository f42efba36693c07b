//go:build linux || darwin

package shared

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// newServer returns a server with a socket, whose connections the test makes itself.
func newServer(t *testing.T, serve func(left func())) *Server {
	t.Helper()
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s := &Server{
		Folder: f, Name: "x", Logger: slog.New(slog.DiscardHandler),
		Status: func() Status { return Status{About: "a test"} },
		Serve: func(_ context.Context, c io.ReadWriteCloser, _ engine.Origin, left func()) {
			serve(left)
			_ = c.Close()
		},
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.listener.Close() })
	return s
}

// client makes a connection and serves it. It reports whether the server serves the client.
func client(t *testing.T, s *Server) bool {
	c, err := net.Dial("unix", s.Folder.socket("x"))
	if err != nil {
		t.Error(err)
		return false
	}
	defer c.Close()
	raw, err := s.listener.AcceptUnix()
	if err != nil {
		t.Error(err)
		return false
	}
	s.serve(t.Context(), newConn(raw), engine.Origin{}, func() bool { return true })
	_, err = newConn(c.(*net.UnixConn)).receive()
	return err == nil
}

// TestLoad serves many clients at the same time, of which each asks what the server does.
func TestLoad(t *testing.T) {
	var s *Server
	s = newServer(t, func(left func()) {
		if got := s.status(); len(got.Clients) < 1 || got.Clients[0].Since.IsZero() || got.About != "a test" || got.PID != os.Getpid() {
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
			if !client(t, s) {
				t.Error("refused")
			}
		})
	}
	all.Wait()
	if got := s.status(); len(got.Clients) != 0 || s.served != 0 {
		t.Errorf("afterwards: %+v, %d served", got, s.served)
	}
}

// TestRetire lets a server without clients end, and one whose socket has gone.
func TestRetire(t *testing.T) {
	var s *Server
	s = newServer(t, func(func()) {
		if s.retire(false) {
			t.Error("it retires with a client")
		}
	})
	if !client(t, s) || s.lost() {
		t.Error("lost, although its socket is there")
	}
	at := s.Folder.socket
	if err := os.Rename(at("x"), at("y")); err != nil {
		t.Fatal(err)
	}
	if !s.lost() {
		t.Error("not lost without its socket")
	}
	if err := os.WriteFile(at("x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !s.lost() {
		t.Error("not lost with another file in place of its socket")
	}
	if err := os.Rename(at("y"), at("x")); err != nil {
		t.Fatal(err)
	}
	s.until = time.Now().Add(time.Hour)
	if s.retire(false) {
		t.Error("it retires before it was idle for long enough")
	}
	s.until = time.Now()
	if !s.retire(false) || !s.retire(false) {
		t.Error("it does not retire")
	}
	if _, err := os.Lstat(at("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

func TestFrames(t *testing.T) {
	const most = 16 << 20
	long := func(n int) string { return `{"server":"` + strings.Repeat("x", n-len(`{"server":""}`)-1) + "\"}\n" }
	for name, tt := range map[string]struct {
		text string
		want string // of the error
	}{
		"short":           {`{"server":"x"}` + "\nmore", ""},
		"as long as may":  {long(most), ""},
		"too long":        {long(most + 1), "too long"},
		"no JSON":         {"x\n", "handshake: "},
		"another type":    {`{"server":1}` + "\n", "handshake: "},
		"without its end": {`{"server":"x"}`, "EOF"},
		"a refusal":       {`{"refused":"why"}` + "\n", "it refuses: why"},
	} {
		c := &Conn{in: bufio.NewReader(strings.NewReader(tt.text))}
		f, err := c.receive()
		if tt.want == "" && (err != nil || f.Server == "") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
