package safefile

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// ErrLocked reports a file that another open file has locked.
var ErrLocked error = windows.ERROR_LOCK_VIOLATION

// Lock locks a file exclusively.
func Lock(f syscall.Conn) error {
	return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// Share locks a file together with others that share it. It fails with [ErrLocked] while
// another open file has it locked exclusively.
func Share(f syscall.Conn) error { return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY) }

// Unlock ends the lock of an open file.
func Unlock(f syscall.Conn) error {
	return control(f, func(h windows.Handle) error {
		return windows.UnlockFileEx(h, 0, 1, 0, &windows.Overlapped{OffsetHigh: place})
	})
}

// place is the place of each lock, beyond the end of every file: here a lock keeps
// others from writing to its place.
const place = 1 << 30

func lock(f syscall.Conn, how uint32) error {
	return control(f, func(h windows.Handle) error {
		return windows.LockFileEx(h, how, 0, 1, 0, &windows.Overlapped{OffsetHigh: place})
	})
}

func control(f syscall.Conn, do func(windows.Handle) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = do(windows.Handle(fd)) })
	return errors.Join(err, failed)
}
