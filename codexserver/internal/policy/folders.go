package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folders returns those of the paths that exist, for [LeadsThrough].
func Folders(paths []string) []os.FileInfo {
	var folders []os.FileInfo
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			folders = append(folders, info)
		}
	}
	return folders
}

// maxLinks is how many symbolic links are followed. The system's own limit is lower.
const maxLinks = 64

// LeadsThrough walks to path, link by link, and reports whether one of the folders on the
// way is a root. It compares the folders themselves, so that neither letter case nor a
// second name hides one. It returns true if it cannot reach path, which must be absolute.
func LeadsThrough(path string, roots []os.FileInfo) bool {
	isRoot := func(info os.FileInfo) bool {
		return slices.ContainsFunc(roots, func(root os.FileInfo) bool { return os.SameFile(root, info) })
	}
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, split(path)
	if info, err := os.Stat(top); err != nil || isRoot(info) || !filepath.IsAbs(path) {
		return true
	}
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil || isRoot(info) {
			return true
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return true
		}
		if filepath.IsAbs(target) {
			at = top
		}
		rest = append(split(target), rest...)
	}
	return false
}

// split returns the names in a path. It keeps "..", which leads up from the target of a
// link before it, so the path must not be cleaned.
func split(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return name == "" || name == "." })
}
