//go:build unix

package shared

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

// mine reports whether a file belongs to this user.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// listen makes the socket that of this process: the system tells those who connect which process
// listened last.
func listen(l *net.UnixListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) })
	return errors.Join(err, failed)
}

// backlog is how many connections may wait for the server. The system may allow fewer.
const backlog = 1 << 12

// ownSession starts a process that does not end with the terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
