package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/script"
	"mvdan.cc/sh/v3/syntax"
)

// shells are the programs that run a script given after -c.
var shells = []string{"bash", "sh", "zsh", "dash", "ksh"}

// otherShells run scripts of much the same form.
var otherShells = []string{"ash", "csh", "fish", "mksh", "pdksh", "rbash", "tcsh", "yash"}

// Commands returns the argv of each command of a shell's script, for rules that
// allow. An argv of another program is its own only command.
//
// Plain is false, and nothing is to be allowed, when the shell is named with a
// folder or gets anything but -c or -lc and one script, or when there is more to
// the script than commands of plain words joined by &&, ||, ; and |.
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
	parsed, ok := script.Parse(text)
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

// Mentioned returns the commands that argv may run, for rules that deny: argv
// itself and, when its program looks like a shell, every command of every word
// that can be read as a script, those of scripts within it too. It rather
// returns too many. Of a command whose words the shell would compute it returns
// those in front.
func Mentioned(argv []string) [][]string {
	return mentioned(argv, 8)
}

func mentioned(argv []string, depth int) [][]string {
	if len(argv) == 0 {
		return nil
	}
	found := [][]string{argv}
	if depth == 0 || !LooksLikeShell(argv[0]) {
		return found
	}
	for _, text := range argv[1:] {
		p := syntax.NewParser(syntax.Variant(syntax.LangBash))
		for stmt, err := range p.StmtsSeq(strings.NewReader(text)) {
			if err != nil {
				continue // the shell runs what comes before the error
			}
			syntax.Walk(stmt, func(n syntax.Node) bool {
				if call, ok := n.(*syntax.CallExpr); ok {
					found = append(found, mentioned(script.StaticWords(call.Args), depth-1)...)
				}
				return true
			})
		}
	}
	return found
}

// LooksLikeShell reports whether a program is called like a shell, wherever it
// lies.
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
