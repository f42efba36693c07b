// Package paths compares file paths, and follows them. [Below] and [Within] compare their texts alone: resolve
// the links of both before, where that matters.
package paths

import "path/filepath"

// Real returns a path without symbolic links, or path itself if it leads nowhere.
func Real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Below reports whether path is the folder, or lies in it. Both are absolute, or both
// relative to the same folder.
func Below(path, folder string) bool {
	_, ok := Within(path, folder)
	return ok
}

// Within returns the path relative to the folder, "." for the folder itself. It reports
// whether [Below] holds, and returns "" otherwise.
func Within(path, folder string) (rel string, ok bool) {
	rel, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}
