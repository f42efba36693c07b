//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package rollout

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked reports a file that another process has locked.
var errLocked error = unix.EWOULDBLOCK

// lock locks a file until it is closed or its process ends.
func lock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	return errors.Join(err, failed)
}
