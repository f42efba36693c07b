//go:build !unix

package git

import "io/fs"

// space returns the size of a file.
func space(info fs.FileInfo) (size int64, file inode, several bool) {
	return info.Size(), inode{}, false
}
