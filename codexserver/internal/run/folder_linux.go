package run

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenFolder opens a folder with O_PATH by an absolute path. It fails if the path has a
// symbolic link.
func OpenFolder(path string) (*os.File, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open("/", flags, 0)
	for part := range strings.SplitSeq(path, "/") {
		if err != nil {
			break
		}
		if part == "" {
			continue
		}
		var next int
		next, err = unix.Openat(at, part, flags, 0)
		unix.Close(at)
		at = next
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(at), path), nil
}
