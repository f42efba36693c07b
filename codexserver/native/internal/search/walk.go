package search

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// Walk calls file with the path of each file that is not ignored, relative to root and
// with slashes. It includes hidden files, but nothing in .git. It treats a symbolic link
// as a file and does not follow it. It ends when file returns false.
func Walk(ctx context.Context, root string, file func(path string) (more bool)) {
	if !filepath.IsAbs(root) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// folder walks one folder. dir is its path in the system; path is its path below root, with a slash at its end;
	// names is its path below the folder of the outermost rules.
	var folder func(dir, path string, names []string, rules *Rules)
	folder = func(dir, path string, names []string, rules *Rules) {
		entries, err := os.ReadDir(dir)
		if err != nil && len(entries) == 0 {
			return // it is missing, or may not be read
		}
		for _, e := range entries {
			if slices.Contains(ruleFiles, e.Name()) {
				rules = rules.Read(filepath.Join(dir, e.Name()), len(names))
			}
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return
			}
			name := e.Name()
			names := append(names, name)
			isDir := e.IsDir()
			if name == ".git" || rules.Ignores(names, isDir) {
				continue
			}
			switch {
			case isDir:
				folder(filepath.Join(dir, name), path+name+"/", names, rules)
			case e.Type().IsRegular() || e.Type()&os.ModeSymlink != 0:
				if !file(path + name) {
					stop()
				}
			}
		}
	}
	root = filepath.Clean(root)
	rules, above := outer(root)
	folder(root, "", above, rules)
}

// ruleFiles have the rules of a folder; the second one overrides the first.
var ruleFiles = []string{".gitignore", ".ignore"}

// outer returns the rules of the folders above root, up to its repository, and the path of
// root below the repository.
func outer(root string) (*Rules, []string) {
	dir := git.Root(root)
	if dir == "" {
		return nil, nil
	}
	var above []string // innermost first
	for at := root; at != dir; at = filepath.Dir(at) {
		above = append(above, filepath.Base(at))
	}
	slices.Reverse(above)
	r := (*Rules)(nil).Read(filepath.Join(dir, ".git", "info", "exclude"), 0)
	for i, name := range above {
		for _, file := range ruleFiles {
			r = r.Read(filepath.Join(dir, file), i)
		}
		dir = filepath.Join(dir, name)
	}
	return r, above
}

// Glob returns the test of a pattern for paths with slashes, as those of [Walk]. Without a slash
// the pattern matches a name at any depth; ** matches any folders, and {a,b} either.
func Glob(pattern string) (func(file string) bool, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, doublestar.ErrBadPattern
	}
	pattern = below(strings.TrimPrefix(pattern, "./"))
	return func(file string) bool {
		if !strings.Contains(pattern, "/") {
			file = path.Base(file)
		}
		return doublestar.MatchUnvalidated(pattern, file)
	}, nil
}
