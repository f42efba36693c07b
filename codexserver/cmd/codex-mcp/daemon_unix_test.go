//go:build linux || darwin

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
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

// TestDialSocket checks which sockets are trusted: those that no other user can replace, and at
// Codex's own place only that of its daemon if it has recorded one.
func TestDialSocket(t *testing.T) {
	change := func(mode os.FileMode, name ...string) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			if err := os.Chmod(filepath.Join(append([]string{home}, name...)...), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, home string)
		own   string // a part of the error with --codex unix://, "" for none
		path  string // that with --codex unix://PATH
	}{
		{"fine", func(*testing.T, string) {}, "", ""},
		{"none", func(t *testing.T, home string) { os.Remove(controlSocket(home)) }, "no such file", "no such file"},
		{"folder of the link", change(0o777, "app-server-control"), "other users can write", "other users can write"},
		{"folder of the socket", change(0o770, "real"), "other users can write", "other users can write"},
		{"folder above", change(0o777), "other users can write", "other users can write"},
		{"sticky folder above", change(0o777 | os.ModeSticky), "", ""},
		{"folder of the record", change(0o770, "app-server-daemon"), "other users can write", ""},
		{"another process", func(t *testing.T, home string) { record(t, home, os.Getpid()+1) }, "has the socket", ""},
		{"a broken record", func(t *testing.T, home string) {
			if err := os.WriteFile(filepath.Join(home, "app-server-daemon", "daemon.pid"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "daemon.pid", ""},
		{"no daemon", func(t *testing.T, home string) { os.Remove(filepath.Join(home, "app-server-daemon", "daemon.pid")) }, "", ""},
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
			for at, want := range map[string]string{"unix://": test.own, "unix://" + controlSocket(home): test.path} {
				conn, err := c.dialer(at)(t.Context())
				if conn != nil {
					conn.Close()
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", at, err, want)
				}
			}
		})
	}
}

// TestDialSocketOfAnotherUser checks that a socket of another user is not trusted. Only root can
// make one.
func TestDialSocketOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	home, socket := listening(t)
	if err := os.Lchown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	c := &configuration{home: home, log: slog.New(slog.DiscardHandler)}
	if _, err := c.dialer("unix://")(t.Context()); err == nil || !strings.Contains(err.Error(), "not a socket of this user") {
		t.Errorf("error %v", err)
	}
}
