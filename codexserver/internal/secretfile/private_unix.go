//go:build unix

package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that others could have put there, or can read.
func private(info fs.FileInfo) error {
	switch owner, ok := info.Sys().(*syscall.Stat_t); {
	case !info.Mode().IsRegular():
		return errors.New("want a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("others may read it")
	case !ok || int(owner.Uid) != os.Getuid():
		return errors.New("it belongs to another user")
	}
	return nil
}
