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
	// folder walks one folder. dir is its path in the system, name its path below root, and outer that below the repository,
	// with slashes and one at the end.
	var folder func(dir, name, outer string, all rules)
	folder = func(dir, name, outer string, all rules) {
		entries, err := os.ReadDir(dir)
		if err != nil && len(entries) == 0 {
			return // it is missing, or may not be read
		}
		for _, e := range entries {
			if slices.Contains(ruleFiles, e.Name()) {
				all = all.read(filepath.Join(dir, e.Name()), outer)
			}
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return
			}
			switch own := e.Name(); {
			case own == ".git" || all.ignore(outer+own, e.IsDir()):
			case e.IsDir():
				folder(filepath.Join(dir, own), name+own+"/", outer+own+"/", all)
			case e.Type().IsRegular() || e.Type()&os.ModeSymlink != 0:
				if !file(name + own) {
					stop()
				}
			}
		}
	}
	root = filepath.Clean(root)
	outer, above := above(root)
	folder(root, "", outer, above)
}

// ruleFiles have the rules of a folder; the second one overrides the first.
var ruleFiles = []string{".gitignore", ".ignore"}

// above returns the path of root below its repository, with a slash at its end, and the rules of the folders above root there.
func above(root string) (outer string, all rules) {
	dir := git.Root(root)
	if dir == "" {
		return "", nil
	}
	all = all.read(filepath.Join(dir, ".git", "info", "exclude"), "")
	for name := range strings.FieldsFuncSeq(root[len(dir):], func(r rune) bool { return r == filepath.Separator }) {
		for _, file := range ruleFiles {
			all = all.read(filepath.Join(dir, file), outer)
		}
		dir, outer = filepath.Join(dir, name), outer+name+"/"
	}
	return outer, all
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
