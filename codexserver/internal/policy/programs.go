package policy

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/script"
	"mvdan.cc/sh/v3/syntax"
)

// Programs returns the words that name the programs that a command starts: its first word
// and, if that is a shell, the first word of each command in the script that is not built
// into the shell. It does not return what these programs start in turn.
//
// It returns false if some programs are unknown: the arguments of the shell are not -c or
// -lc and one script, or the script computes the name of a program, defines functions,
// sets variables, or changes its folder and names a program relative to it.
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
	// A script that changes PATH contains the name, in some quoting.
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
		case *syntax.Lit: // in zsh path is another name of PATH
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
			case isHarmlessBuiltin(args[0]):
				moves = moves || args[0] == "cd"
			case isOtherBuiltin(args[0]):
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

// isHarmlessBuiltin reports whether name is built into shells and does not change what
// later words name.
func isHarmlessBuiltin(name string) bool {
	switch name {
	case ":", "[", "break", "cd", "continue", "echo", "exit", "false", "pwd", "return", "set", "shift", "test", "times", "true", "umask", "wait":
		return true
	}
	return false
}

// isOtherBuiltin reports whether name is built into shells and runs or loads something
// else, or changes what later words name.
func isOtherBuiltin(name string) bool {
	switch name {
	case ".", "alias", "autoload", "bind", "builtin", "command", "complete", "declare", "disable", "emulate", "enable", "eval", "exec",
		"export", "fc", "functions", "getopts", "hash", "local", "mapfile", "noglob", "popd", "printf", "pushd", "read", "readarray",
		"readonly", "rehash", "setopt", "shopt", "source", "trap", "typeset", "unalias", "unset", "unsetopt", "zmodload":
		return true
	}
	return false
}
