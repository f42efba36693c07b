package policy

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/script"
	"mvdan.cc/sh/v3/syntax"
)

// Programs returns the words by which a command names the programs that it
// starts: its first word and, when that is a shell's, the first word of each
// command of the script, but for what the shell does itself. What these programs
// start in turn is not known.
//
// It returns false when some of them are unknown: the shell gets something else than
// -c or -lc and one script, or the script computes a program, defines
// functions, sets variables, or names a program relative to a folder that it
// changes.
func Programs(argv []string) (words []string, ok bool) {
	return programs(argv, 8)
}

func programs(argv []string, depth int) (words []string, ok bool) {
	if len(argv) == 0 || argv[0] == "" || depth == 0 {
		return nil, false
	}
	words = []string{argv[0]}
	if !LooksLikeShell(argv[0]) {
		return words, true
	}
	text, ok := scriptOf(argv)
	if !ok {
		return nil, false
	}
	// However it is quoted, a script that changes PATH has its name.
	if strings.Contains(strings.NewReplacer("\\\n", "", `\`, "", `'`, "", `"`, "").Replace(text), "PATH") {
		return nil, false
	}
	file, err := script.ParseFile(text)
	if err != nil {
		return nil, false
	}
	moves := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit: // zsh has PATH under this name, too
			ok = n.Value != "path"
		case *syntax.FuncDecl, *syntax.DeclClause, *syntax.CoprocClause, *syntax.LetClause:
			ok = false
		case *syntax.CallExpr:
			if len(n.Assigns) > 0 {
				ok = false
			}
			if len(n.Args) == 0 || !ok {
				break
			}
			args := script.StaticWords(n.Args)
			switch {
			case len(args) == 0 || n.Args[0].Lit() != "[" && strings.ContainsAny(args[0], "*?[]{}~"):
				ok = false
			case ownWork(args[0]):
				moves = moves || args[0] == "cd"
			case othersWork(args[0]):
				ok = false
			case LooksLikeShell(args[0]):
				if len(args) < len(n.Args) {
					ok = false
					break
				}
				var inner []string
				inner, ok = programs(args, depth-1)
				words = append(words, inner...)
			default:
				words = append(words, args[0])
			}
		}
		return ok
	})
	if !ok {
		return nil, false
	}
	for _, w := range words[1:] {
		if moves && strings.Contains(w, "/") && !strings.HasPrefix(w, "/") {
			return nil, false
		}
	}
	return words, true
}

// ownWork are the commands that a shell carries out itself, and which change
// nothing about what the words after them name.
func ownWork(name string) bool {
	switch name {
	case ":", "[", "break", "cd", "continue", "echo", "exit", "false", "pwd", "return", "set", "shift", "test", "times", "true", "umask", "wait":
		return true
	}
	return false
}

// othersWork are the commands of a shell that run or load something else, or
// change what a word names.
func othersWork(name string) bool {
	switch name {
	case ".", "alias", "autoload", "bind", "builtin", "command", "complete", "declare", "disable", "emulate", "enable", "eval", "exec",
		"export", "fc", "functions", "getopts", "hash", "local", "mapfile", "noglob", "popd", "printf", "pushd", "read", "readarray",
		"readonly", "rehash", "setopt", "shopt", "source", "trap", "typeset", "unalias", "unset", "unsetopt", "zmodload":
		return true
	}
	return false
}
