//go:build unix

package taskfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file or folder belongs to this user, and only this user can write
// to it.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// syncFolder writes the names in a folder to disk.
func syncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
