//go:build unix

package git

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// readFolder lists a folder. It opens no pipe and no link in its place.
func readFolder(path string) ([]fs.DirEntry, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return f.ReadDir(-1)
}

func lstat(path string) (stat, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return stat{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stat{uint32(s.Mode), s.Size, s.Mtim.Nano(), s.Ctim.Nano(), s.Ino, uint64(s.Dev)}, nil
}
