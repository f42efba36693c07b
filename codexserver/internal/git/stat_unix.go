//go:build unix

package git

import "golang.org/x/sys/unix"

// isPosix is false on systems where a file's mode does not show whether it is a program.
const isPosix = true

// changed returns when a file has changed, and its number.
func changed(file string) (at int64, inode uint64) {
	var s unix.Stat_t
	if err := unix.Lstat(file, &s); err != nil {
		return 0, 0
	}
	return s.Ctim.Nano(), s.Ino
}
