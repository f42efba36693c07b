//go:build unix

package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readerLeaves waits until f is a pipe or a socket whose reader is gone. It returns false if it cannot wait.
func readerLeaves(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
}

// rewrites reports whether a terminal can rewrite its last line.
func rewrites(*os.File) bool { return true }
