//go:build !linux

package command

import (
	"errors"
	"os"
	"path/filepath"
)

// OpenFolder opens a folder by an absolute path. Where there is a symbolic link
// on the path, it fails.
func OpenFolder(path string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if real != filepath.Clean(path) {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.New("there is a symbolic link on the path")}
	}
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.New("it is not a folder")}
	}
	return os.Open(path)
}

// folderPath leads to an open folder. These systems find it by its name alone.
func folderPath(f *os.File) string { return f.Name() }
