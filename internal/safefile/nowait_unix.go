//go:build unix

package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openFlags prevent that opening a file waits for a writer or a lease, or that a terminal
// becomes the controlling terminal of this process.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// readNow reads once without waiting. It bypasses the runtime's poller, which would wait
// until the file has something to read.
func readNow(f *os.File, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := conn.Read(func(fd uintptr) bool {
		for {
			// One call reads no more than 1 GiB, which Darwin would refuse.
			n, err = syscall.Read(int(fd), p[:min(len(p), 1<<30)])
			if !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
	switch {
	case outer != nil:
		return 0, outer
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
