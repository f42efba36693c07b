package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// door leads to a worker's listener. It is a descriptor of a socket that has no path any
// more: no other process can connect, and a killed server leaves nothing behind.
type door struct{ socket *os.File }

// A socket has a path in doorsIn, a folder of the server's home that no worker has, from
// its creation until it is opened. What is found there after staleDoor is of a server that
// was killed in between.
var doorsIn = filepath.Join("codex-mcp", "workers")

const (
	doorPrefix = "worker-"
	staleDoor  = time.Minute
)

// openDoor returns a listener for a worker, and the door to it, to be closed. home is the
// server's.
func openDoor(home string) (l *net.UnixListener, d *door, err error) {
	in := filepath.Join(home, doorsIn)
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(in)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	removeStale(root)
	folder, err := root.Open(".")
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	// The address of a socket has at most 108 bytes, which the home may be longer than.
	name := doorPrefix + rand.Text()
	path := throughDescriptor(folder.Fd()) + "/" + name
	if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false)
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		d = &door{os.NewFile(uintptr(fd), name)}
	}
	if err := errors.Join(err, root.Remove(name)); err != nil {
		if d != nil {
			d.close()
		}
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, d, nil
}

// removeStale removes the sockets of killed servers. What it cannot remove stays: nothing
// uses it.
func removeStale(root *os.Root) {
	folder, err := root.Open(".")
	if err != nil {
		return
	}
	defer folder.Close()
	entries, _ := folder.ReadDir(-1)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), doorPrefix) && info.Mode().Type() == os.ModeSocket && time.Since(info.ModTime()) > staleDoor {
			_ = root.Remove(e.Name())
		}
	}
}

// throughDescriptor is a path of what a descriptor of this process is open to.
func throughDescriptor(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// dial returns a connection to the worker. It fails with [syscall.ECONNREFUSED] when the
// worker does not listen any more.
func (d *door) dial(ctx context.Context) (conn net.Conn, err error) {
	raw, err := d.socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	// The descriptor stays open meanwhile. Otherwise its number could be that of the door
	// to another worker.
	if raw.Control(func(fd uintptr) { conn, err = dialer.DialContext(ctx, "unix", throughDescriptor(fd)) }) != nil {
		return nil, syscall.ECONNREFUSED // the worker has ended
	}
	return conn, err
}

func (d *door) close() { _ = d.socket.Close() }
