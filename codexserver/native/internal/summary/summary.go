// Package summary describes commands for display. Decisions must not depend on it.
package summary

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Of describes each part of a command, as far as its words show what it does. It is the
// parsed_cmd of an exec_command_begin event.
func Of(argv []string) []protocol.ParsedCommand {
	var parts []protocol.ParsedCommand
	if text, ok := policy.ScriptOf(argv); ok {
		parts = parseBash(text)
	} else {
		parts = simplify(summarizeAll(splitAtConnectors(unwrap(argv))))
	}
	// Equal parts in a row are shown once.
	return slices.CompactFunc(parts, sameCommand)
}

// parseBash describes a script of bash -lc. It leaves out commands of a pipe that only
// format.
func parseBash(text string) []protocol.ParsedCommand {
	whole := []protocol.ParsedCommand{unknown(text)}
	parsed, ok := policy.ParseScript(text)
	if !ok {
		return whole
	}
	var commands [][]string
	for _, cmd := range parsed {
		words := make([]string, len(cmd))
		for i, w := range cmd {
			words[i] = w.Raw
		}
		if len(parsed) == 1 || !onlyFormats(words) {
			commands = append(commands, words)
		}
	}
	if len(commands) == 0 || len(parsed) == 1 && onlyFormats(commands[0]) {
		return whole
	}
	parts := summarizeAll(commands)
	if len(parts) > 1 {
		parts = simplify(slices.DeleteFunc(parts, isTrue))
	}
	if len(parts) == 1 && parts[0].Type != "unknown" {
		parts[0].Cmd = wholeText(parts[0], text, len(parsed) > 1)
	}
	return parts
}

// wholeText returns the text for the only part left of a script. It is the whole script
// if there was no other part, or if the script reads a file through sed -n.
func wholeText(part protocol.ParsedCommand, text string, joined bool) string {
	words, ok := shellword.SplitScript(text)
	if !ok {
		words = []string{text}
	}
	if !joined && !slices.ContainsFunc(words, isConnector) {
		return shellword.Join(words)
	}
	throughSed := false
	for i := range len(words) - 1 {
		throughSed = throughSed || words[i] == "sed" && words[i+1] == "-n"
	}
	if part.Type == "read" && throughSed && slices.Contains(words, "|") {
		return text
	}
	return part.Cmd
}

// unwrap returns the words of the script of bash -c. It removes a first command that only
// pipes yes or no to the next.
func unwrap(argv []string) []string {
	if len(argv) == 3 && argv[0] == "bash" && argv[1] == "-c" {
		if words, ok := shellword.SplitScript(argv[2]); ok {
			return words
		}
	}
	if len(argv) > 2 && argv[1] == "|" && slices.Contains([]string{"yes", "y", "no", "n"}, argv[0]) {
		return argv[2:]
	}
	return argv
}

func isConnector(word string) bool {
	return word == "&&" || word == "||" || word == "|" || word == ";"
}

func splitAtConnectors(words []string) [][]string {
	if !slices.ContainsFunc(words, isConnector) {
		return [][]string{words}
	}
	var parts [][]string
	for len(words) > 0 {
		n := slices.IndexFunc(words, isConnector)
		if n < 0 {
			n = len(words)
		}
		if n > 0 {
			parts = append(parts, words[:n])
		}
		words = words[min(n+1, len(words)):]
	}
	return parts
}

func summarizeAll(commands [][]string) []protocol.ParsedCommand {
	parts := make([]protocol.ParsedCommand, len(commands))
	for i, cmd := range commands {
		parts[i] = summarize(cmd)
	}
	return parts
}

// simplify leaves out parts that only prepare or decorate others: a first echo, a cd
// before something else, true, and nl without a file.
func simplify(parts []protocol.ParsedCommand) []protocol.ParsedCommand {
	for len(parts) > 1 {
		drop := -1
		if first, _ := program(parts[0]); first == "echo" {
			drop = 0
		}
		if drop < 0 {
			drop = slices.IndexFunc(parts[:len(parts)-1], func(p protocol.ParsedCommand) bool {
				name, _ := program(p)
				return name == "cd"
			})
		}
		if drop < 0 {
			drop = slices.IndexFunc(parts, isTrue)
		}
		if drop < 0 {
			drop = slices.IndexFunc(parts, func(p protocol.ParsedCommand) bool {
				name, args := program(p)
				return name == "nl" && !slices.ContainsFunc(args, isOperand)
			})
		}
		if drop < 0 {
			break
		}
		parts = slices.Delete(parts, drop, drop+1)
	}
	return parts
}

func isTrue(p protocol.ParsedCommand) bool { return p.Type == "unknown" && p.Cmd == "true" }

// program splits the text of an unknown part.
func program(p protocol.ParsedCommand) (name string, args []string) {
	if p.Type != "unknown" {
		return "", nil
	}
	words, ok := shellword.SplitScript(p.Cmd)
	if !ok || len(words) == 0 {
		return "", nil
	}
	return words[0], words[1:]
}

func sameCommand(a, b protocol.ParsedCommand) bool {
	same := func(x, y *string) bool { return x == y || x != nil && y != nil && *x == *y }
	return a.Type == b.Type && a.Cmd == b.Cmd && same(a.Name, b.Name) && same(a.Query, b.Query) && same(a.Path, b.Path)
}
