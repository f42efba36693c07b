//go:build !unix

package secretfile

import (
	"errors"
	"io/fs"
)

// private refuses what is no file. Who may read it is the folder's to say here.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("want a regular file")
	}
	return nil
}
