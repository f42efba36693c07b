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

// TestDoor: a door leads to its listener, without a file, until it is closed.
func TestDoor(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	var listeners [2]*net.UnixListener
	var doors [2]*door
	for i := range doors {
		var err error
		if listeners[i], doors[i], err = openDoor(home); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listeners[i].Close() })
	}
	if left, err := os.ReadDir(filepath.Join(home, doorsIn)); err != nil || len(left) > 0 {
		t.Errorf("files that others could connect to: %v, %v", left, err)
	}
	for i, d := range doors {
		conn, err := d.dial(t.Context())
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
	doors[1].close()
	for i, d := range doors {
		if conn, err := d.dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("door %d, which is closed: %v, %v", i, conn, err)
		}
	}
}

// TestDoorRemovesStale: the next start removes what a killed server has left, and nothing
// else.
func TestDoorRemovesStale(t *testing.T) {
	home := t.TempDir()
	in := filepath.Join(home, doorsIn)
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(in) // the path may be longer than an address
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
	before := time.Now().Add(-2 * staleDoor)
	for _, name := range []string{"worker-old", "other", "worker-file"} {
		if err := os.Chtimes(name, before, before); err != nil {
			t.Fatal(err)
		}
	}
	l, d, err := openDoor(home)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	d.close()
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
