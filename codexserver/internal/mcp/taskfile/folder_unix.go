//go:build unix

package taskfile

import (
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
