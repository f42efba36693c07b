package safefile

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// LockAt locks one byte of a file, which need not exist, exclusively. The file must be open for
// writing. It fails with [ErrLocked] while another open file has the byte locked.
func LockAt(f syscall.Conn, at int64) error { return lockAt(f, unix.F_WRLCK, at) }

// ShareAt is LockAt together with others that share the byte. Reading is enough.
func ShareAt(f syscall.Conn, at int64) error { return lockAt(f, unix.F_RDLCK, at) }

// UnlockRange ends all locks of bytes of a file. Closing the file does so too, but only when a
// process that is about to be started has left its copy of the descriptor.
func UnlockRange(f syscall.Conn) error { return setRange(f, unix.F_UNLCK, 0, 0) }

func lockAt(f syscall.Conn, how int16, at int64) error { return setRange(f, how, at, 1) }

func setRange(f syscall.Conn, how int16, at, size int64) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		// The lock is that of the open file: it ends when the file is closed, and other files
		// of this process compete.
		failed = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: how, Whence: io.SeekStart, Start: at, Len: size})
	})
	if errors.Is(failed, unix.EACCES) {
		failed = ErrLocked
	}
	return errors.Join(err, failed)
}
