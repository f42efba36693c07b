// Package self recognizes commands that would start the running program again.
package self

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Program is the running program, which the server looks for among the configured MCP servers: most users' config.toml
// lists the server itself, because they added it there to try it out. No command starts a nil Program.
type Program struct {
	path string // without links
	file os.FileInfo
}

// New returns the program at path, or nil if there is none.
func New(path string) *Program {
	real, _ := filepath.EvalSymlinks(path)
	info, err := os.Stat(real)
	if path == "" || err != nil {
		return nil
	}
	return &Program{real, info}
}

// maxChecked is how many words of one command are checked. An untrusted project may have written them.
const maxChecked = 4096

// StartedBy reports whether a word of a command names the program: a path that leads to its file or
// ends with its name, or a name that is found in the PATH. The words of a script, as after sh -c, count
// too. The command runs in dir, with PATH and HOME of env or else of this process.
//
// A word may also name it for another reason: to lose an MCP server is better than an endless chain of this one. What a
// file has is not seen, such as a script around the program.
func (p *Program) StartedBy(argv []string, dir string, env map[string]string) bool {
	if p == nil {
		return false
	}
	path := append(filepath.SplitList(env["PATH"]), filepath.SplitList(os.Getenv("PATH"))...)
	home := cmp.Or(env["HOME"], os.Getenv("HOME"))
	homes := strings.NewReplacer("${HOME}", home, "$HOME", home)
	checked := 0
	for _, arg := range argv {
		words := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>{}\"'`=,", r) })
		for _, w := range append(words, arg) {
			if checked++; checked > maxChecked {
				return false
			}
			if after, ok := strings.CutPrefix(w, "~/"); ok {
				w = filepath.Join(home, after)
			}
			if p.named(homes.Replace(w), dir, path) {
				return true
			}
		}
	}
	return false
}

func (p *Program) named(w, dir string, path []string) bool {
	switch {
	case w == "":
		return false
	case !strings.ContainsRune(w, '/') && !strings.ContainsRune(w, filepath.Separator):
		return slices.ContainsFunc(path, func(folder string) bool { return p.isAt(filepath.Join(folder, w)) })
	case filepath.Base(w) == filepath.Base(p.path): // a variable may hide its folder
		return true
	case !filepath.IsAbs(w):
		w = filepath.Join(dir, w)
	}
	return p.isAt(w)
}

// isAt reports whether a path leads to the program's file, or to the one that took its place since it started.
func (p *Program) isAt(path string) bool {
	info, err := os.Stat(path)
	if err != nil && runtime.GOOS == "windows" {
		path += ".exe"
		info, err = os.Stat(path)
	}
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	return os.SameFile(info, p.file) || err == nil && real == p.path
}
