package git

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when the file's inode last changed. A program cannot set this time.
func changeTime(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return time.Time{}
}
