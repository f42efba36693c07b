package policy

import (
	"path"
	"slices"
	"strings"
)

// shells are the programs that run a script given after -c.
var shells = []string{"bash", "sh", "zsh", "dash", "ksh"}

// Commands takes a shell's script apart: the argv of each of its commands. An
// argv that is no shell's is its own only command. Plain is false when there is
// more to the script than commands of plain words joined by &&, ||, ; and |, or
// when the shell gets other arguments than one script.
func Commands(argv []string) (commands [][]string, plain bool) {
	if len(argv) == 0 {
		return nil, false
	}
	if !slices.Contains(shells, path.Base(argv[0])) {
		return [][]string{argv}, true
	}
	if len(argv) != 3 || !strings.HasPrefix(argv[1], "-") || !strings.HasSuffix(argv[1], "c") {
		return nil, false
	}
	s, ok := parseScript(argv[2])
	if !ok {
		return nil, false
	}
	for _, words := range s.commands {
		command := make([]string, len(words))
		for i, w := range words {
			if w.open {
				return nil, false
			}
			command[i] = w.text
		}
		commands = append(commands, command)
	}
	return commands, true
}
