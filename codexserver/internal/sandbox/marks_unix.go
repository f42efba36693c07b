//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

func byteOf(folder fs.FileInfo) (at int64, ok bool) {
	stat, ok := folder.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return placeOf(uint64(stat.Dev), stat.Ino), true
}
