package workers

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSocket checks that a socket connects to its listener without a file, until one of
// them is closed.
func TestSocket(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	var listeners [2]*net.UnixListener
	var sockets [2]*workerSocket
	for i := range sockets {
		var err error
		if listeners[i], sockets[i], err = listenWorker(home); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listeners[i].Close() })
	}
	if left, err := os.ReadDir(filepath.Join(home, socketFolder)); err != nil || len(left) > 0 {
		t.Errorf("files to which others could connect: %v, %v", left, err)
	}
	for i, s := range sockets {
		conn, err := s.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listeners[i].Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted.Close()
		conn.Close()
	}
	listeners[0].Close()
	sockets[1].close()
	for i, s := range sockets {
		if conn, err := s.dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("socket %d, which is closed: %v, %v", i, conn, err)
		}
	}
}

// TestRemoveStale checks that the next start removes the old sockets of a killed server,
// and nothing else.
func TestRemoveStale(t *testing.T) {
	home := t.TempDir()
	in := filepath.Join(home, socketFolder)
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(in) // the path can be longer than an address of a socket
	for _, name := range []string{"worker-old", "worker-new", "other"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	if err := os.WriteFile("worker-file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-2 * staleAge)
	for _, name := range []string{"worker-old", "other", "worker-file"} {
		if err := os.Chtimes(name, before, before); err != nil {
			t.Fatal(err)
		}
	}
	l, s, err := listenWorker(home)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s.close()
	left, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "other worker-file worker-new" {
		t.Errorf("left: %s", got)
	}
}
