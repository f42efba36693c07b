//go:build unix

package git

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

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

// readable reports whether a file can be read, or is not there any more.
func readable(path string) bool { return !errors.Is(unix.Access(path, unix.R_OK), fs.ErrPermission) }

// appendFile adds at most size bytes of a regular file to data, without a link or a device in its place. It makes few calls of
// the system for a file, since there may be thousands.
func appendFile(data []byte, path string, size int64) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return data, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFREG {
		return data, &fs.PathError{Op: "read", Path: path, Err: cmp.Or(err, fs.ErrInvalid)}
	}
	end := len(data) + int(size)
	for data = slices.Grow(data, int(size)); len(data) < end; {
		n, err := unix.Read(fd, data[len(data):end])
		switch {
		case err == nil && n > 0:
			data = data[:len(data)+n]
		case err == nil:
			return data, nil
		case err != unix.EINTR:
			return data, &fs.PathError{Op: "read", Path: path, Err: err}
		}
	}
	return data, nil
}
