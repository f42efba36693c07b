//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
)

// listening makes a folder for sockets with an app-server at a socket in it, and Codex's link to
// that. The process of the test is recorded as the daemon.
func listening(t *testing.T) (home, socket string) {
	t.Helper()
	home, err := os.MkdirTemp("", "home") // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	real := filepath.Join(home, "real")
	for _, dir := range []string{real, filepath.Join(home, "app-server-control"), filepath.Join(home, "app-server-daemon")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	socket = filepath.Join(real, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = jsonrpc.NewPeer(wsrpc.New(conn), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) {
			return map[string]string{"userAgent": "codex/0.169.0 (Test)"}, nil
		}), &jsonrpc.Options{OmitVersion: true}).Run(r.Context())
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	if err := os.Symlink(socket, controlSocket(home)); err != nil {
		t.Fatal(err)
	}
	record(t, home, os.Getpid())
	return home, socket
}

func record(t *testing.T, home string, pid int) {
	t.Helper()
	raw, err := json.Marshal(map[string]int{"pid": pid})
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "app-server-daemon", "daemon.pid"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAttach checks which sockets are trusted: those that no other user can replace, and for
// the daemon only its own.
func TestAttach(t *testing.T) {
	change := func(mode os.FileMode, name ...string) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			if err := os.Chmod(filepath.Join(append([]string{home}, name...)...), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name    string
		spoil   func(t *testing.T, home string)
		daemon  string // a part of the error, "" for none
		address string // that with --codex unix://
	}{
		{"fine", func(*testing.T, string) {}, "", ""},
		{"none", func(t *testing.T, home string) { os.Remove(controlSocket(home)) }, "none runs", "no such file"},
		{"folder of the link", change(0o777, "app-server-control"), "other users can write", "other users can write"},
		{"folder of the socket", change(0o770, "real"), "other users can write", "other users can write"},
		{"folder above", change(0o777), "other users can write", "other users can write"},
		{"sticky folder above", change(0o777 | os.ModeSticky), "", ""},
		{"another process", func(t *testing.T, home string) { record(t, home, os.Getpid()+1) }, "has the socket", ""},
		{"no daemon", func(t *testing.T, home string) { os.Remove(filepath.Join(home, "app-server-daemon", "daemon.pid")) }, "not started as a daemon", ""},
		{"no socket", func(t *testing.T, home string) {
			os.Remove(filepath.Join(home, "real", "socket"))
			if err := os.WriteFile(filepath.Join(home, "real", "socket"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a socket", "not a socket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home, _ := listening(t)
			test.spoil(t, home)
			c := &configuration{home: home, log: slog.New(slog.DiscardHandler)}
			check := func(what string, dial func(context.Context) (jsonrpc.Transport, error), want string) {
				t.Helper()
				conn, err := dial(t.Context())
				if conn != nil {
					conn.Close()
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", what, err, want)
				}
				if what == "daemon" && err != nil && !errors.Is(err, appserver.ErrNoDaemon) {
					t.Errorf("%s: %v ends the start", what, err)
				}
			}
			check("daemon", c.attach, test.daemon)
			check("address", c.dialer("unix://"), test.address)
			if test.name == "fine" {
				check("path", c.dialer("unix://"+controlSocket(home)), "")
			}
		})
	}
}

// TestAttachOtherUser checks that a socket of another user is not trusted. Only root can make one.
func TestAttachOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	home, socket := listening(t)
	if err := os.Lchown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	c := &configuration{home: home, log: slog.New(slog.DiscardHandler)}
	if _, err := c.attach(t.Context()); err == nil || !strings.Contains(err.Error(), "not a socket of this user") {
		t.Errorf("error %v", err)
	}
}

// TestAlone checks what keeps the daemon from being used.
func TestAlone(t *testing.T) {
	t.Setenv("CODEX_BIN", "")
	for _, test := range []struct {
		c    configuration
		at   string
		want string
	}{
		{configuration{}, "", ""},
		{configuration{overrides: map[string]any{"approvals": map[string]any{"timeout": "1m"}}}, "", ""},
		{configuration{overrides: map[string]any{"model": "m"}}, "", "model"},
		{configuration{overrides: map[string]any{"sandbox_mode": "read-only"}}, "", "sandbox_mode"},
		{configuration{strict: true}, "", "--strict-config"},
		{configuration{}, "codex", "--codex"},
	} {
		if got := test.c.alone(test.at); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v, %q: %q, want %q", test.c, test.at, got, test.want)
		}
	}
	t.Setenv("CODEX_BIN", "/usr/bin/codex")
	if got := (&configuration{}).alone(""); got == "" {
		t.Error("CODEX_BIN is ignored")
	}
}
