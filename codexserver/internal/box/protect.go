package box

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxPointer is the size, in bytes, of the largest file of git that is read for the folder that it names.
const maxPointer = 64 << 10

// Protected returns the paths below the writable roots whose contents other programs run or trust: the .git of each
// root, also a missing one, with what it leads to, and the protected and sealed folders. It leaves out a protected
// folder that contains a root and lies in none: only that root in it is writable.
func (s *Sandbox) Protected(roots []string) []string {
	found := slices.Clone(s.options.Sealed)
	for _, path := range s.options.Protected {
		if !surrounds(path, roots) {
			found = append(found, path)
		}
	}
	for _, root := range roots {
		found = append(found, gitPaths(filepath.Join(root, ".git"))...)
	}
	return found
}

// surrounds reports whether the folder contains one of the roots and lies in none.
func surrounds(folder string, roots []string) bool {
	real, err := filepath.EvalSymlinks(folder)
	return err == nil && slices.ContainsFunc(roots, func(root string) bool { return below(root, real) }) &&
		!slices.ContainsFunc(roots, func(root string) bool { return below(real, root) })
}

// gitPaths returns a .git and the folders that it leads to as a link, a file, or the folder of a worktree.
func gitPaths(dot string) []string {
	found := []string{dot}
	dir := paths.Real(dot)
	if info, err := os.Stat(dir); err == nil && dir != dot && (info.IsDir() || info.Mode().IsRegular()) {
		found = append(found, dir)
	}
	if linked, err := Pointer(dir, "gitdir:"); err == nil { // it is a file
		dir = linked
		found = append(found, dir)
	}
	if common, err := Pointer(filepath.Join(dir, "commondir"), ""); err == nil {
		found = append(found, common)
	}
	return found
}

// inGitFolder reports whether a folder is a git folder or lies in one. It recognizes .git by its name, and a bare
// repository or the folder of a worktree by its contents. A working tree in a git folder does not count.
func inGitFolder(path string) bool {
	for {
		if strings.EqualFold(filepath.Base(path), ".git") || hasAll(path, "HEAD", "objects", "refs") ||
			hasAll(path, "HEAD", "commondir") {
			return true
		}
		up := filepath.Dir(path)
		if up == path || hasAll(path, ".git") {
			return false
		}
		path = up
	}
}

func hasAll(folder string, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err != nil
	})
}

// Pointer reads a file of git that holds a prefix and then a path, and returns the path.
func Pointer(file, prefix string) (string, error) {
	b, err := safefile.Read(file, maxPointer)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(b)), prefix)
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return "", fmt.Errorf("%s does not name a folder", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path, nil
}
