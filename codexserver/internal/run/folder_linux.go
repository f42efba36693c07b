package run

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenFolder opens a folder with O_PATH by an absolute path. It fails if the path has a symbolic link.
func OpenFolder(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	folder := os.NewFile(uintptr(fd), path)
	if real, err := os.Readlink(nameOf(folder)); err != nil || real != filepath.Clean(path) {
		return nil, &os.PathError{Op: "open", Path: path,
			Err: errors.Join(errors.New("the path has a symbolic link"), err, folder.Close())}
	}
	return folder, nil
}

// nameOf returns a path of an open folder, whatever its own path leads to now.
func nameOf(folder *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) }
