package decide

import (
	"path"
	"slices"
	"strings"
)

// shells are the programs that run a script given after -c.
var shells = []string{"bash", "sh", "zsh", "dash", "ksh"}

// otherShells run similar scripts.
var otherShells = []string{"ash", "csh", "fish", "mksh", "pdksh", "rbash", "tcsh", "yash"}

// Commands returns the argv of each command in a shell's script, for rules that allow. If
// the program is not a shell, it returns argv itself.
//
// Plain is false, and nothing may be allowed, unless the shell is named without a folder or in one of the system, its
// arguments are -c or -lc and one script, and the script has only commands of plain words joined by &&, ||, ; and |.
func Commands(argv []string) (commands [][]string, plain bool) {
	if len(argv) == 0 {
		return nil, false
	}
	if !LooksLikeShell(argv[0]) {
		return [][]string{argv}, true
	}
	text, ok := ShellScript(argv)
	if !ok {
		return nil, false
	}
	parsed, ok := ParseScript(text)
	for _, words := range parsed {
		command := make([]string, len(words))
		for i, w := range words {
			if w.Open {
				return nil, false
			}
			command[i] = w.Text
		}
		commands = append(commands, command)
	}
	return commands, ok
}

// Begins reports whether a rule that allows is the beginning of argv. For others see [Mentions].
func Begins(rule, argv []string) bool {
	return len(rule) > 0 && len(rule) <= len(argv) && slices.Equal(rule, argv[:len(rule)])
}

// LooksLikeShell reports whether a program has one of the names of a shell, in any folder.
func LooksLikeShell(program string) bool {
	name := strings.TrimPrefix(programName(program), "-")
	return slices.Contains(shells, name) || slices.Contains(otherShells, name)
}

// ScriptOf returns the script of ["bash", "-lc", script].
func ScriptOf(argv []string) (text string, ok bool) {
	if len(argv) != 3 || argv[0] != "bash" || argv[1] != "-lc" {
		return "", false
	}
	return argv[2], true
}

// ShellScript returns the script of a command that only runs it in a shell without a folder or in one of the system.
func ShellScript(argv []string) (text string, ok bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", false
	}
	dir, name := path.Split(argv[0])
	return argv[2], slices.Contains(shells, name) &&
		slices.Contains([]string{"", "/bin/", "/usr/bin/", "/usr/local/bin/"}, dir)
}

// Written returns a command as a person would write it: if a shell runs one plain command, that command alone. It is for
// people: rules and the log have the whole argv.
func Written(argv []string) []string {
	commands, plain := Commands(argv)
	if !plain || len(commands) != 1 || slices.ContainsFunc(commands[0],
		func(word string) bool { return strings.HasPrefix(word, "=") }) {
		return argv // zsh makes another word of one that begins so
	}
	return commands[0]
}
