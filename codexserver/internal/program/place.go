package program

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// Place is where a command runs.
type Place struct {
	// Dir is the absolute folder.
	Dir string
	// Env is the environment, NAME=value; its PATH counts.
	Env []string
	// Roots are the absolute folders that commands may write.
	Roots []string
}

// Replaceable reports whether commands can write a program that argv names: the program,
// or a link to it, lies below one of the roots, or it is not found. [policy.Programs]
// names the programs. Replaceable returns true if they cannot be determined, and for a
// shell that reads a profile from a root.
//
// The path is that of the first such program, or "" if it was not found.
func (p Place) Replaceable(argv []string) (path string, yes bool) {
	words, ok := policy.Programs(argv)
	if !ok || len(words) > 1 && p.searchesCurrent() {
		return "", true
	}
	roots := Folders(p.Roots)
	if policy.LooksLikeShell(argv[0]) && p.readsProfile(roots) {
		return "", true
	}
	if path, yes := p.startsReplaceable(argv, roots); yes {
		return path, true
	}
	for _, word := range words {
		// The engine and a shell may resolve ".." after a symbolic link differently.
		if slices.Contains(strings.Split(word, "/"), "..") {
			return "", true
		}
		path, err := command.LookPath(word, p.Dir, p.Env)
		if err != nil {
			return "", true
		}
		if LeadsThrough(path, roots) {
			return path, true
		}
	}
	return "", false
}

// searchesCurrent reports whether PATH has a relative folder, so that a shell also
// searches the current one.
func (p Place) searchesCurrent() bool {
	return runtime.GOOS != "windows" &&
		slices.ContainsFunc(strings.Split(p.value("PATH"), ":"), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// profiles are the files that shells read at their start. No shell reads all of them.
var profiles = []string{".bash_profile", ".bash_login", ".bashrc", ".profile", ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".kshrc"}

// readsProfile reports whether there is a profile below one of the roots.
func (p Place) readsProfile(roots []os.FileInfo) bool {
	files := []string{p.value("BASH_ENV"), p.value("ENV")}
	for _, dir := range []string{p.value("HOME"), p.value("ZDOTDIR")} {
		for _, name := range profiles {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return slices.ContainsFunc(files, func(file string) bool {
		if file == "" {
			return false
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(p.Dir, file)
		}
		_, err := os.Lstat(file)
		return err == nil && LeadsThrough(file, roots)
	})
}

// value returns the value of a variable. The last entry counts.
func (p Place) value(name string) string {
	value := ""
	for _, entry := range p.Env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
