package workers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// workerSocket is a descriptor of the socket on which a worker listens. The socket has no
// path: other processes cannot connect to it, and a killed server leaves no file.
type workerSocket struct{ file *os.File }

// socketFolder is a folder in the server's home that workers cannot see. A socket has a
// path in it only while listenWorker runs: one that a killed server has left is nobody's, and does no harm.
var socketFolder = filepath.Join("codex-mcp", "workers")

// listenWorker returns a listener for a worker and the socket for connecting to it. The
// caller closes both. home is the server's home.
func listenWorker(home string) (l *net.UnixListener, s *workerSocket, err error) {
	in := filepath.Join(home, socketFolder)
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(in)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	folder, err := root.Open(".")
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	// The address of a socket has at most 108 bytes. The path of the home can be longer.
	name := rand.Text()
	path := descriptorPath(folder.Fd()) + "/" + name
	if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false)
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		s = &workerSocket{os.NewFile(uintptr(fd), name)}
	}
	if err := errors.Join(err, root.Remove(name)); err != nil {
		if s != nil {
			s.close()
		}
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, s, nil
}

// descriptorPath returns a path of the file to which a descriptor of this process is open.
func descriptorPath(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// dial connects to the worker. It fails with [syscall.ECONNREFUSED] if the worker no
// longer listens.
func (s *workerSocket) dial(ctx context.Context) (conn net.Conn, err error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	// Control keeps the descriptor open. Otherwise its number could be reused for the
	// socket of another worker.
	if raw.Control(func(fd uintptr) { conn, err = dialer.DialContext(ctx, "unix", descriptorPath(fd)) }) != nil {
		return nil, syscall.ECONNREFUSED // the worker has ended
	}
	return conn, err
}

func (s *workerSocket) close() { _ = s.file.Close() }

// socketPair returns two connected ends, of which another process can inherit the second.
func socketPair() (net.Conn, *os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	own, end := os.NewFile(uintptr(pair[0]), "store"), os.NewFile(uintptr(pair[1]), "store")
	conn, err := net.FileConn(own)
	if err = errors.Join(err, own.Close()); err != nil {
		return nil, nil, errors.Join(err, end.Close())
	}
	return conn, end, nil
}
