package patch

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// gitName is protected anywhere in a path, protectedNames only below the writable folders.
// Editors and agents run what these files name, without being asked, when a user opens or
// enters a folder or commits in it.
const gitName = ".git"

var protectedNames = []string{
	gitName,
	".codex", "codex-mcp.toml", ".claude", ".gemini", ".mcp.json", // agents: hooks, servers, permissions
	".opencode", "opencode.json", "opencode.jsonc", ".pi", ".roo", ".kiro", ".windsurf", ".amp", ".continue", ".clinerules",
	".vscode", ".cursor", ".idea", ".zed", ".devcontainer", // editors: tasks, servers, containers
	".envrc", ".husky", // direnv on entering a folder, git on a commit
}

// gitFiles are the files of a git folder that determine what git runs, or that make the
// folder a repository.
var gitFiles = []string{
	"config", "config.worktree", "commondir", "gitdir", "head", "hooks", "info", "modules", "objects", "packed-refs", "refs", "reftable", "worktrees",
}

// Protected reports whether the plan writes or removes files that make other programs run
// commands without being asked: the files of a git repository, and those of editors and
// agents, at any depth. It compares names as the most lenient file system does, without
// regard to letter case. Writable are absolute paths; above them only git's own folders
// count.
func (p *Plan) Protected(writable []string) bool {
	for range p.protected(writable) {
		return true
	}
	return false
}

// protected yields the files for which [Plan.Protected] is true, as the patch names them.
func (p *Plan) protected(writable []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		roots := append(slices.Clone(writable), resolveAll(writable)...)
		for _, file := range p.files {
			real := file.place().path
			if (isProtected(file.path, roots) || isProtected(real, roots) || p.inRepository(real)) && !yield(file.path) {
				return
			}
		}
	}
}

// ProtectedOf returns those of the paths, absolute and free of symbolic links, that make a patch that
// writes them [Plan.Protected].
func ProtectedOf(paths, writable []string) []string {
	return slices.Collect(written(paths).protected(writable))
}

// written returns a plan that writes files at paths.
func written(paths []string) *Plan {
	plan := &Plan{}
	for _, path := range paths {
		at := &place{path: path}
		plan.files = append(plan.files, &plannedFile{path: path, entry: at, target: at, after: new("")})
	}
	return plan
}

func isProtected(path string, roots []string) bool {
	if slices.ContainsFunc(components(path), func(name string) bool { return isNamed(name, gitName) }) {
		return true
	}
	rest := path
	for _, root := range roots {
		if !paths.Below(path, root) {
			continue
		}
		if rel, err := filepath.Rel(root, path); err == nil && len(rel) < len(rest) {
			rest = rel
		}
	}
	return slices.ContainsFunc(components(rest), func(name string) bool {
		return slices.ContainsFunc(protectedNames, func(protected string) bool { return isNamed(name, protected) })
	})
}

// components splits a path at the separators of all systems.
func components(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
}

// isNamed reports whether name and protected are the same file on some file system.
// Protected is in lower case.
func isNamed(name, protected string) bool {
	name = fold(name)
	return name == protected || isShortName(name, protected)
}

// fold returns a name as the most lenient file system reads it. Those of macOS and Windows
// ignore letter case, and others can. HFS+ and ext4 ignore invisible characters. Windows
// ignores dots and blanks at the end, and a colon begins the name of a part of the file.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
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

// isShortName reports whether name can be the short name, such as GIT~1, that Windows makes
// for protected. It has at most six characters, or two and a checksum, then a tilde and a
// number, and three characters of the extension.
func isShortName(name, protected string) bool {
	base, extension, _ := strings.Cut(name, ".")
	stem, number, ok := strings.Cut(base, "~")
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	long := strings.TrimLeft(protected, ".")
	longExtension := ""
	if i := strings.LastIndexByte(long, '.'); i >= 0 {
		long, longExtension = long[:i], long[i+1:]
	}
	if extension != longExtension[:min(3, len(longExtension))] {
		return false
	}
	if stem != "" && stem == long[:min(6, len(long))] {
		return true
	}
	return len(stem) == 6 && stem[:2] == long[:2] && strings.Trim(stem[2:], "0123456789abcdef") == ""
}

// inRepository reports whether path is one of git's files in a bare repository, or in a
// folder that the patch makes one. Git reads the configuration of such a folder when it is
// started there.
func (p *Plan) inRepository(path string) bool {
	name := filepath.Base(path)
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if slices.Contains(gitFiles, fold(name)) &&
			(p.has(dir, "objects") && p.has(dir, "refs") || p.has(dir, "head") && p.has(dir, "commondir")) {
			return true
		}
		name = filepath.Base(dir)
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// has reports whether dir has a file or folder with a name, in lower case, now or after
// the patch.
func (p *Plan) has(dir, name string) bool {
	for _, variant := range []string{name, strings.ToUpper(name)} {
		if _, err := os.Lstat(filepath.Join(dir, variant)); err == nil {
			return true
		}
	}
	for _, file := range p.files {
		if file.after == nil || !paths.Below(file.target.path, dir) {
			continue
		}
		if rel, err := filepath.Rel(dir, file.target.path); err == nil && fold(components(rel)[0]) == name {
			return true
		}
	}
	return false
}
