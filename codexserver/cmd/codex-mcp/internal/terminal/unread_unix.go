//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread reports whether f is a pipe or a socket whose reader is gone.
func unread(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
