package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// openFolder opens a folder by a path without symbolic links: where there is
// one now, it fails.
func openFolder(path string) (*folder, error) {
	fd, err := openWithoutLinks(path)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path) // closed when nobody needs it
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &folder{path, info, file}, nil
}

// openWithoutLinks returns a descriptor of the folder, for reference only.
func openWithoutLinks(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	root, parts := split(path)
	at, err := unix.Open(root, flags, 0)
	for _, part := range parts {
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
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return at, nil
}
