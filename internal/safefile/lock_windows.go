package safefile

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// ErrLocked reports a file that another open file has locked.
var ErrLocked error = windows.ERROR_LOCK_VIOLATION

// Lock locks a file exclusively.
func Lock(f syscall.Conn) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Share locks a file together with others that share it. It fails with [ErrLocked] while
// another open file has it locked exclusively.
func Share(f syscall.Conn) error { return lock(f, 0) }

func lock(f syscall.Conn, how uint32) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = windows.LockFileEx(windows.Handle(fd), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	})
	return errors.Join(err, failed)
}
