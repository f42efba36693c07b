//go:build !linux

package run

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
)

// OpenFolder opens a folder by an absolute path. It fails if the path has a symbolic link.
func OpenFolder(path string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() || real != filepath.Clean(path) {
		return nil, &os.PathError{Op: "open", Path: path,
			Err: cmp.Or(err, errors.New("it is not a folder without a symbolic link on its path"))}
	}
	return os.Open(path)
}

// nameOf returns the path of an open folder.
func nameOf(folder *os.File) string { return folder.Name() }
