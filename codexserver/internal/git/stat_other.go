//go:build !unix

package git

import (
	"os"
	"path/filepath"
)

// isPosix is false on systems where a file's mode does not show whether it is a program.
const isPosix = false

// readFolder calls f for each file in a folder.
func readFolder(path string, f func(name string, s stat)) error {
	entries, err := os.ReadDir(path)
	for _, one := range entries {
		if s, err := lstat(filepath.Join(path, one.Name())); err == nil {
			f(one.Name(), s)
		}
	}
	return err
}

// lstat describes the file at a path.
func lstat(path string) (stat, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stat{}, err
	}
	return stat{mode: info.Mode(), size: info.Size(), modified: info.ModTime().UnixNano()}, nil
}
