package patch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// repositories are protected anywhere in a path, protectedNames only below the writable folders. Editors and agents run what
// these files name, without being asked, when a user opens or enters a folder or commits in it.
var repositories = []string{".git", ".hg", ".jj"}

var protectedNames = []string{
	".codex", "codex-mcp.toml", ".claude", ".gemini", ".mcp.json", // agents: hooks, servers, permissions
	".opencode", "opencode.json", "opencode.jsonc", ".pi", ".roo", ".kiro", ".windsurf", ".amp", ".continue",
	".clinerules",
	".vscode", ".cursor", ".idea", ".zed", ".devcontainer", // editors: tasks, servers, containers
	".envrc", ".husky", // direnv on entering a folder, git on a commit
}

// Obeyed reports whether other programs run or obey what has a name, or lies in a folder with it. Repositories are none.
func Obeyed(name string) bool { return slices.Contains(protectedNames, fold(name)) }

// gitFiles are the files of a git folder that determine what git runs, or that make the folder a repository.
var gitFiles = []string{
	"config", "config.worktree", "commondir", "gitdir", "head", "hooks", "info", "modules", "objects", "packed-refs",
	"refs", "reftable", "worktrees",
}

// Within reports whether each file that the plan writes or removes lies below one of the absolute folders.
func (p *Plan) Within(folders []string) bool {
	roots := resolveAll(folders)
	return !slices.ContainsFunc(p.files, func(file *plannedFile) bool {
		path := file.place().path
		return !slices.ContainsFunc(roots, func(root string) bool { return path != root && paths.Below(path, root) })
	})
}

// All reports whether f is true for each path, free of symbolic links, that the plan writes or removes.
func (p *Plan) All(f func(path string) bool) bool {
	return !slices.ContainsFunc(p.files, func(file *plannedFile) bool { return !f(file.place().path) })
}

// Touched returns the files, by the paths of [Plan.Changes], that the plan writes or removes and that are
// one of the places, or lie below one. Symbolic links are followed, and letter case is ignored.
func (p *Plan) Touched(places []string) (touched []string) {
	roots := resolveAll(places)
	for _, file := range p.files {
		path := strings.ToLower(file.place().path)
		if slices.ContainsFunc(roots, func(root string) bool { return paths.Below(path, strings.ToLower(root)) }) {
			touched = append(touched, file.shown)
		}
	}
	return touched
}

// Protected returns the files, by their absolute paths, that the plan writes or removes and that make other programs
// run commands without being asked: those of a repository, and of editors and agents, at any depth. It compares
// names as the most lenient file system does. Writable are absolute paths; above them only the folders of repositories count.
func (p *Plan) Protected(writable []string) (protected []string) {
	roots := append(slices.Clone(writable), resolveAll(writable)...)
	for _, file := range p.files {
		real := file.place().path
		if isProtected(file.path(), roots) || isProtected(real, roots) || p.inRepository(real) {
			protected = append(protected, file.path())
		}
	}
	return protected
}

// ProtectedOf is [Plan.Protected] of a plan that writes the paths, which are absolute and free of symbolic links.
func ProtectedOf(paths, writable []string) []string {
	plan := &Plan{}
	for _, path := range paths {
		at := &place{path: path}
		plan.files = append(plan.files, &plannedFile{written: path, entry: at, target: at, after: new("")})
	}
	return plan.Protected(writable)
}

func isProtected(path string, roots []string) bool {
	rest := path
	for _, root := range roots {
		if rel, ok := paths.Within(path, root); ok && len(rel) < len(rest) {
			rest = rel
		}
	}
	return slices.ContainsFunc(components(path),
		func(name string) bool { return slices.Contains(repositories, fold(name)) }) ||
		slices.ContainsFunc(components(rest), func(name string) bool {
			name = fold(name)
			return slices.Contains(protectedNames, name) || shortName.Get().MatchString(name)
		})
}

// shortName matches names that Windows may have made for another one, such as GIT~1.
var shortName = lazyregexp.Regexp{Text: `^[^.]{0,6}~[0-9]+(?:\.[^.]{0,3})?$`}

func components(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
}

// fold returns a name as the most lenient file system reads it. Those of macOS and Windows
// ignore letter case, and others can. HFS+ and ext4 ignore invisible characters. Windows
// ignores dots and blanks at the end, and a colon begins the name of a part of the file.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point):
			return -1
		case r == 'ı' || r == 'İ':
			return 'i'
		}
		// The smallest rune with the same case folding, such as K for the kelvin sign.
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return unicode.ToLower(least)
	}, name)
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	return strings.TrimRight(name, ". ")
}

// inRepository reports whether path is one of git's files in a bare repository, or in a folder that the patch makes
// one. Git reads the configuration of such a folder when it is started there.
func (p *Plan) inRepository(path string) bool {
	for dir := filepath.Dir(path); path != dir; path, dir = dir, filepath.Dir(dir) {
		if slices.Contains(gitFiles, fold(filepath.Base(path))) &&
			(p.has(dir, "objects") && p.has(dir, "refs") || p.has(dir, "head") && p.has(dir, "commondir")) {
			return true
		}
	}
	return false
}

// has reports whether dir has a file or folder with a name, in lower case, now or after the patch.
func (p *Plan) has(dir, name string) bool {
	for _, variant := range []string{name, strings.ToUpper(name)} {
		if _, err := os.Lstat(filepath.Join(dir, variant)); err == nil {
			return true
		}
	}
	for _, file := range p.files {
		if rel, ok := paths.Within(file.target.path, dir); ok && file.after != nil && fold(components(rel)[0]) == name {
			return true
		}
	}
	return false
}
