package policy

import (
	"path"
	"slices"
	"strings"
)

// Literal returns the words of a command that has no other meaning than its words, now and
// later. They are argv or, if argv is a shell with -c or -lc and one script, the shell and
// the words of the script's only command, then the files that it redirects its streams to.
// The first programs of them are names of programs that are started; any other word may be
// anything.
//
// It returns false if a word has a character that a shell could expand or compute with,
// because any program may pass its words to a shell, and for a script of several commands,
// because one of them can change what the next one names.
func Literal(argv []string) (words []string, programs int, ok bool) {
	words, programs = argv, 1
	if len(argv) == 0 || argv[0] == "" {
		return nil, 0, false
	}
	if text, is := ShellScript(argv); is {
		command, files, plain := ParseOne(text)
		if !plain {
			return nil, 0, false
		}
		words, programs = []string{argv[0]}, 2
		for _, w := range append(command, files...) {
			if w.Open {
				return nil, 0, false
			}
			words = append(words, w.Text)
		}
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.ContainsFunc(word, isActive) }) {
		return nil, 0, false
	}
	return words, programs, true
}

// ShellScript returns the script of a command that only runs it in a shell, which is named
// without a folder or in a folder of the system.
func ShellScript(argv []string) (text string, ok bool) {
	text, ok = scriptOf(argv)
	return text, ok && isSystemShell(argv[0])
}

// isSystemShell reports whether a program is one of the shells, named without a folder or
// in a folder of the system.
func isSystemShell(program string) bool {
	dir, name := path.Split(program)
	return slices.Contains(shells, name) && slices.Contains([]string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}, dir)
}

// isActive reports whether a character in a word may mean more than itself to a shell.
func isActive(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./-:,=@%+ ", r))
}
