//go:build linux || darwin

package shared

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const supported = true

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

// mine reports whether a file belongs to this user.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// descriptor calls f with the file descriptor of a socket.
func descriptor(s syscall.Conn, f func(fd int) error) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// ownSession starts a process that does not end with the terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
