//go:build unix

package safefile

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrLocked reports a file that another open file has locked.
var ErrLocked error = unix.EWOULDBLOCK

// Lock locks a file exclusively.
func Lock(f syscall.Conn) error { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

// Share locks a file together with others that share it. It fails with [ErrLocked] while
// another open file has it locked exclusively.
func Share(f syscall.Conn) error { return flock(f, unix.LOCK_SH|unix.LOCK_NB) }

// Unlock ends the lock of an open file.
func Unlock(f syscall.Conn) error { return flock(f, unix.LOCK_UN) }

func flock(f syscall.Conn, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = unix.Flock(int(fd), how) })
	return errors.Join(err, failed)
}
