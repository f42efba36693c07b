//go:build linux || darwin

package shared

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// newServer returns a server with a socket, whose connections the test makes itself.
func newServer(t *testing.T, serve func(left func())) *Server {
	t.Helper()
	f := must.Get(Open(t.TempDir()))(t)
	t.Cleanup(func() { f.Close() })
	s := &Server{
		Folder: f, Name: "x", Idle: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Status: func() Status { return Status{About: "a test"} },
		Serve: func(_ context.Context, c io.ReadWriteCloser, _ engine.Origin, left func()) {
			serve(left)
			_ = c.Close()
		},
	}
	must.OK(t, s.Listen())
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

// TestRest lets a server without clients end, and one whose socket has gone.
func TestRest(t *testing.T) {
	var s *Server
	s = newServer(t, func(left func()) {
		if got := s.status(); len(got.Clients) != 1 || got.Clients[0].Since.IsZero() || got.About != "a test" || got.PID != os.Getpid() {
			t.Errorf("status %+v", got)
		}
		s.until = time.Now()
		if s.rest() != s.Idle {
			t.Error("it ends with a client")
		}
		left()
		left() // counts once
		if s.rest() != s.Idle {
			t.Error("it ends while it works for a client that has gone")
		}
		at := s.Folder.socket
		err := os.Rename(at("x"), at("z"))
		if s.rest() != 0 {
			t.Error("it does not end while it works, and nobody can find it")
		}
		if err = errors.Join(err, os.Rename(at("z"), at("x"))); err != nil {
			t.Error(err)
		}
		s.until = time.Now().Add(time.Minute)
	})
	at := s.Folder.socket
	for _, tt := range []struct {
		name  string
		until time.Duration
		move  func() error
		serve bool
		ends  bool
	}{
		{name: "it was idle for long enough", ends: true},
		{name: "it was not", until: time.Minute, serve: true},
		{name: "its socket is gone", until: time.Minute, move: func() error { return os.Rename(at("x"), at("y")) }, ends: true},
		{name: "another file is in its place", until: time.Minute, move: func() error { return os.WriteFile(at("x"), nil, 0o600) }, ends: true},
		{name: "it is there again", until: time.Minute, move: func() error { return os.Rename(at("y"), at("x")) }, serve: true},
	} {
		s.until = time.Now().Add(tt.until)
		if tt.move != nil {
			must.OK(t, tt.move())
		}
		if next := s.rest(); (next == 0) != tt.ends || next > s.Idle {
			t.Errorf("%s: %v", tt.name, next)
		}
		if tt.serve && !client(t, s) || s.until.IsZero() != tt.ends {
			t.Errorf("%s: it does not serve, or may serve", tt.name)
		}
	}
	s.until = time.Time{}
	if client(t, s) {
		t.Error("a server that ends takes a client")
	}
	if got := s.status(); len(got.Clients) != 0 || s.served != 0 {
		t.Errorf("afterwards: %+v, %d served", got, s.served)
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
