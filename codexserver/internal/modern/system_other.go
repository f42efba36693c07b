//go:build !unix

package modern

import (
	"errors"
	"io/fs"
)

// lives reports false: a process cannot be looked for here without a handle.
func lives(int) bool { return false }

// private refuses what is no file. Who may read it is the folder's to say here.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("want a regular file")
	}
	return nil
}
