package workers

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
