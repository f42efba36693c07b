//go:build unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

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
