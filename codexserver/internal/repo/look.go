package repo

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// look describes the file at a name with slashes below root, or returns nil. It does not
// follow symbolic links: a name that leads through one does not exist.
func look(root *os.Root, name string) (fs.FileInfo, error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := lstat(root, name[:i])
		if err != nil || info == nil || !info.IsDir() {
			return nil, err
		}
	}
	return lstat(root, name)
}

func lstat(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// isGitName reports whether a path contains the name .git in any letter case.
func isGitName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}
