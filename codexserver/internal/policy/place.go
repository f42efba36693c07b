package policy

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
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

// Replaceable reports whether a rule must not allow a command, because commands may write
// a program that it names, a link to it, or a profile of its shell, or because a program is
// not found. It also returns true for a script of more than plain commands.
//
// The path is that of such a program if it is certain that it would run, otherwise "".
func (p Place) Replaceable(argv []string) (path string, yes bool) {
	commands, plain := Commands(argv)
	if !plain || p.searchesCurrent() {
		return "", true
	}
	s := starts{Place: p, roots: Folders(p.Roots), done: map[part]bool{}}
	programs, shell := commands, LooksLikeShell(argv[0])
	if shell {
		yes = slices.ContainsFunc(p.profiles(), func(file string) bool { return exists(file) && LeadsThrough(file, s.roots) })
		programs = append([][]string{argv[:1]}, commands...)
	}
	moves := false
	for _, words := range programs {
		if len(words) > maxWords {
			return "", true
		}
		if shell && words[0] == "cd" { // built in
			moves = true
			continue
		}
		path, err := proc.LookPath(words[0], p.Dir, p.Env)
		if err == nil && LeadsThrough(path, s.roots) {
			return path, true
		}
		yes = yes || err != nil || isMeaning(words[0]) || moves && strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) ||
			slices.Contains(strings.Split(words[0], "/"), "..") || // a shell may resolve it differently after a symbolic link
			slices.ContainsFunc(words[1:], s.replaceable)
	}
	return "", yes
}

// isMeaning reports whether a command that is built into shells, and a program of some
// systems too, may change what the later words of a script name.
func isMeaning(name string) bool {
	return slices.Contains([]string{"alias", "command", "getopts", "hash", "read", "type", "unalias"}, name)
}

// starts looks for programs in the words that another program gets.
type starts struct {
	Place
	roots []os.FileInfo
	done  map[part]bool
}

// replaceable reports whether a program that gets a word could start a program that
// commands may write, or a shell with any script.
func (s *starts) replaceable(word string) bool {
	all, ok := parts(word)
	return !ok || len(s.done) > maxNames || slices.ContainsFunc(all, func(part part) bool {
		if s.done[part] {
			return false
		}
		s.done[part] = true
		path, err := proc.LookPath(part.name, s.Dir, s.Env)
		return part.whole && LooksLikeShell(part.name) || err == nil && LeadsThrough(path, s.roots)
	})
}

// A command with more words, or more parts of words, is not examined.
const (
	maxWords = 200
	maxParts = 10_000 // of a word
	maxNames = 20_000 // of all words
)

// part is a part of a word. It is whole if it begins where the value of an option does.
type part struct {
	name  string
	whole bool
}

// parts returns the parts of a word that could be the name of a file: they end where the
// word does or before a separator, as in NAME:5 and KEY=NAME,NAME. Whole parts begin where
// the word does, after a separator, or in a short option, as in -fNAME. The others are for
// words of little languages: 1e./x lets sed start ./x. It returns false if there are too
// many.
func parts(word string) (all []part, ok bool) {
	var ends []int
	for i, r := range word + " " {
		if isSeparator(r) {
			ends = append(ends, i)
		}
	}
	if len(word)*len(ends) > maxParts {
		return nil, false
	}
	short := false
	before := ' '
	for i, r := range word {
		whole := short || isSeparator(before)
		for _, j := range ends {
			if i < j {
				all = append(all, part{word[i:j], whole})
			}
		}
		if isSeparator(r) {
			short = r == '-' && before != '-' && isSeparator(before)
		}
		before = r
	}
	return all, true
}

// isSeparator reports whether a program may take what follows or precedes a character for
// the name of a file.
func isSeparator(r rune) bool {
	return r < utf8.RuneSelf && !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '/')
}

// searchesCurrent reports whether PATH has a relative folder, so that programs also search
// the current one.
func (p Place) searchesCurrent() bool {
	return runtime.GOOS != "windows" &&
		slices.ContainsFunc(strings.Split(p.value("PATH"), ":"), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// profiles returns the paths of the files that shells read at their start. No shell reads
// all of them.
func (p Place) profiles() []string {
	var files []string
	for _, name := range []string{"BASH_ENV", "ENV"} {
		if file := p.value(name); file != "" {
			files = append(files, p.absolute(file))
		}
	}
	for _, dir := range []string{p.value("HOME"), p.value("ZDOTDIR")} {
		for _, name := range []string{
			".bash_profile", ".bash_login", ".bashrc", ".profile", ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".kshrc",
		} {
			if dir != "" {
				files = append(files, filepath.Join(p.absolute(dir), name))
			}
		}
	}
	return files
}

// absolute returns the path of a file. It is not cleaned, because ".." leads up from the
// target of a link before it.
func (p Place) absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return p.Dir + string(filepath.Separator) + name
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
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
