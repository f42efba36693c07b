//go:build unix

package git

import (
	"io/fs"
	"syscall"
)

// space returns how many bytes of the disk a file takes, which one it is, and whether it has several names.
func space(info fs.FileInfo) (size int64, file inode, several bool) {
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return info.Size(), inode{}, false
	}
	const block = 512
	return s.Blocks * block, inode{uint64(s.Dev), s.Ino}, s.Nlink > 1
}
