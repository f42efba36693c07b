package proc

import (
	"os"
	"strconv"
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

// folderPath returns a path of an open folder that does not depend on the folder's name.
// It is valid in the process that has the file, and in one that it forks.
func folderPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
