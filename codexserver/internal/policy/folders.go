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
	return !walk(path, func(_ string, info os.FileInfo) bool {
		return !slices.ContainsFunc(roots, func(root os.FileInfo) bool { return os.SameFile(root, info) })
	})
}

// walk goes to path, which must be absolute, and visits the top folder, every folder and link
// on the way, and the file, each with its path without links. It returns false if it cannot
// reach path, or as soon as a visit does.
func walk(path string, visit func(at string, info os.FileInfo) bool) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, split(path)
	if info, err := os.Stat(top); err != nil || !visit(top, info) {
		return false
	}
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil || !visit(next, info) {
			return false
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return false
		}
		if filepath.IsAbs(target) {
			at = top
		}
		rest = append(split(target), rest...)
	}
	return true
}

// split returns the names in a path. It keeps "..", which leads up from the target of a
// link before it, so the path must not be cleaned.
func split(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return name == "" || name == "." })
}
