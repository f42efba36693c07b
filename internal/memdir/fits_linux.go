package memdir

import "golang.org/x/sys/unix"

// fits reports whether the file system of a folder has room, and runs programs.
func fits(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Bavail*uint64(s.Bsize) >= 4<<30 && s.Flags&unix.ST_NOEXEC == 0
}
