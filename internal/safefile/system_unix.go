//go:build unix

package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// SyncFolder writes the names in a folder to disk: what was written there, renamed or removed survives a crash of the
// system. Where folders cannot be synced it does nothing.
func SyncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// isBusy returns false: an open file can be replaced.
func isBusy(error) bool { return false }

// IsFull reports whether a write failed because the disk, a quota or a limit of the size of files has
// no room for it.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// HasOtherNames reports whether the file had more than one name (hard link) when it was
// opened, so that a write to it changes what another name leads to.
func (f *File) HasOtherNames() (bool, error) {
	stat, ok := f.info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1, nil
}

// openFlags prevent that opening a file waits for a writer or a lease, or that a terminal
// becomes the controlling terminal of this process.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// readNow reads once without waiting. It bypasses the runtime's poller, which would wait
// until the file has something to read.
func readNow(f *os.File, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := conn.Read(func(fd uintptr) bool {
		for {
			// One call reads no more than 1 GiB, which Darwin would refuse.
			n, err = syscall.Read(int(fd), p[:min(len(p), 1<<30)])
			if !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
	switch {
	case outer != nil:
		return 0, outer
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// private refuses a file that belongs to another user or that others can read.
func private(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("want a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("other users have access to it: chmod it to 600")
	}
	return owned(info)
}

// owned refuses a file that belongs to another user.
func owned(info fs.FileInfo) error {
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return errors.New("it belongs to another user: remove it")
	}
	return nil
}

// IsOwn reports whether a file or folder belongs to this user, and only this user can write to it.
func IsOwn(info fs.FileInfo) bool { return owned(info) == nil && info.Mode().Perm()&0o022 == 0 }
