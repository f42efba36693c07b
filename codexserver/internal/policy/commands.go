package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shells are the programs that run a script given after -c.
var shells = []string{"bash", "sh", "zsh", "dash", "ksh"}

// otherShells run similar scripts.
var otherShells = []string{"ash", "csh", "fish", "mksh", "pdksh", "rbash", "tcsh", "yash"}

// Commands returns the argv of each command in a shell's script, for rules that allow. If
// the program is not a shell, it returns argv itself.
//
// Plain is false, and nothing may be allowed, unless the shell is named without a folder,
// its arguments are -c or -lc and one script, and the script has only commands of plain
// words joined by &&, ||, ; and |.
func Commands(argv []string) (commands [][]string, plain bool) {
	if len(argv) == 0 {
		return nil, false
	}
	if !LooksLikeShell(argv[0]) {
		return [][]string{argv}, true
	}
	text, ok := scriptOf(argv)
	if !ok || !slices.Contains(shells, argv[0]) {
		return nil, false
	}
	return plainCommands(text)
}

// plainCommands returns the argv of each command in a script of plain words.
func plainCommands(text string) (commands [][]string, plain bool) {
	parsed, ok := ParseScript(text)
	if !ok {
		return nil, false
	}
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
	return commands, true
}

// Mentioned returns the commands that argv may run, for rules that deny: argv itself and,
// if its program looks like a shell, every command in every word that can be parsed as a
// script, including scripts within scripts. It returns too many rather than too few. If
// the shell computes a word of a command, Mentioned returns the words before it.
//
// All is false if commands may be missing: a word is too long or too deeply nested to be
// parsed, or shells start each other too often.
func Mentioned(argv []string) (commands [][]string, all bool) {
	return mentioned(argv, 8)
}

func mentioned(argv []string, depth int) (found [][]string, all bool) {
	if len(argv) == 0 {
		return nil, true
	}
	found, all = [][]string{argv}, true
	if !LooksLikeShell(argv[0]) {
		return found, true
	}
	if depth == 0 {
		return found, false
	}
	for _, text := range argv[1:] {
		for stmt, err := range Statements(text) {
			if err != nil {
				all = all && !errors.Is(err, ErrScript)
				continue // the shell runs what comes before the error
			}
			syntax.Walk(stmt, func(n syntax.Node) bool {
				if call, ok := n.(*syntax.CallExpr); ok {
					inner, complete := mentioned(StaticWords(call.Args), depth-1)
					found, all = append(found, inner...), all && complete
				}
				return true
			})
		}
	}
	return found, all
}

// LooksLikeShell reports whether a program has the name of a shell, in any folder.
func LooksLikeShell(program string) bool {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	name = strings.TrimPrefix(strings.TrimSuffix(name, ".exe"), "-")
	return slices.Contains(shells, name) || slices.Contains(otherShells, name)
}

// scriptOf returns the script of [SHELL, "-c" or "-lc", script].
func scriptOf(argv []string) (text string, ok bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", false
	}
	return argv[2], true
}
