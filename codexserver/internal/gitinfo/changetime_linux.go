package gitinfo

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the file's inode changed last, which a program cannot set.
func changeTime(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return time.Time{}
}
