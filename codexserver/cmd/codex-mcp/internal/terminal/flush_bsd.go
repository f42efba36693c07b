//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import "golang.org/x/sys/unix"

// flush discards typed keys that were not read.
func flush(fd uintptr) error {
	const fread = 1 // FREAD of <sys/fcntl.h>: the input
	return unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, fread)
}
