package rollout

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// errLocked reports a file that another process has locked.
var errLocked error = windows.ERROR_LOCK_VIOLATION

// lock locks a file until it is closed or its process ends.
func lock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	})
	return errors.Join(err, failed)
}
