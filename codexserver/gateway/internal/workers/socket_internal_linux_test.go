package workers

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
		conn := must.Get(s.dial(t.Context()))(t)
		accepted := must.Get(listeners[i].Accept())(t)
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

// TestEnviron checks what a worker does not learn of the user and the unit that run the server.
func TestEnviron(t *testing.T) {
	got := environ([]string{"PATH=/bin", "CODEX_HOME=/server", "SSH_AUTH_SOCK=/agent", "NATS_PASSWORD=x", "NOTIFY_SOCKET=/notify", "WATCHDOG_PID=1", "WATCHDOG_USEC=2"}, "/own")
	if want := []string{"PATH=/bin", "CODEX_HOME=/own"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
