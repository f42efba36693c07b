//go:build !linux

package box

import "os"

// openFolder describes a folder without opening it. These systems confine by real paths,
// which links made later do not change.
func openFolder(path string) (*folder, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	return &folder{path: path, info: info}, nil
}
