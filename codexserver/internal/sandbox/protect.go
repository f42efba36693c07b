package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Protected are the paths below the writable roots that hold what other programs
// run or trust: the .git of each root, be it there or not, with what it leads
// to, and the folders of [Options.Protected].
func (s *Sandbox) Protected(roots []string) []string {
	found := slices.Clone(s.options.Protected)
	for _, root := range roots {
		found = append(found, gitPaths(root)...)
	}
	return found
}

// gitPaths are root's .git and, when that is the file of a worktree or a
// submodule, the folders that it leads to.
func gitPaths(root string) []string {
	dot := filepath.Join(root, ".git")
	found := []string{dot}
	info, err := os.Lstat(dot)
	if err != nil {
		return found
	}
	if !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return found
	}
	dir, ok := pointer(dot, "gitdir:")
	if !ok {
		return found
	}
	found = append(found, dir)
	if common, ok := pointer(filepath.Join(dir, "commondir"), ""); ok {
		found = append(found, common)
	}
	return found
}

// pointer reads a file of git's that holds a path behind a prefix.
func pointer(file, prefix string) (string, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(b)), prefix)
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path, true
}
