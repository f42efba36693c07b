package command

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenFolder opens a folder by an absolute path, for reference only. Where there
// is a symbolic link on the path, it fails.
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

// folderPath leads to an open folder, whatever has its name by now. It does in
// the process that has the file, and in one that it forks.
func folderPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
