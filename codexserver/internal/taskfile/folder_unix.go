//go:build unix

package taskfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file or folder is this user's, and only this user can write it.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// syncFolder makes the names in a folder survive a crash of the system.
func syncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
