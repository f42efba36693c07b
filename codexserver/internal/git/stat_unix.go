//go:build unix

package git

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// readFolder calls f for each file in a folder. It opens no pipe and no link in its place.
func readFolder(path string, f func(name string, s stat)) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var names []string
	for buf := make([]byte, 16<<10); ; {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "readdir", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	for _, name := range names {
		if s, err := statAt(fd, name); err == nil {
			f(name, s)
		}
	}
	return nil
}

func lstat(path string) (stat, error) { return statAt(unix.AT_FDCWD, path) }

func statAt(folder int, name string) (stat, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(folder, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stat{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return stat{uint32(s.Mode), s.Size, s.Mtim.Nano(), s.Ctim.Nano(), s.Ino, uint64(s.Dev)}, nil
}

// readable reports whether a file can be read, or is not there any more.
func readable(path string) bool { return !errors.Is(unix.Access(path, unix.R_OK), fs.ErrPermission) }
