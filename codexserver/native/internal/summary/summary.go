// Package summary describes commands for display. Decisions must not depend on it.
package summary

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Of describes a command, or each command of a script of plain words, as far as its words clearly show what it
// does. It is the parsed_cmd of an exec_command_begin event.
func Of(argv []string) []protocol.ParsedCommand {
	var parts []protocol.ParsedCommand
	for _, words := range commandsOf(argv) {
		parts = append(parts, plain(words))
	}
	if parts == nil {
		return []protocol.ParsedCommand{{Type: "unknown", Cmd: argv[2]}}
	}
	return parts
}

// commandsOf returns the commands of a script, nil for a script of bash -lc of more than plain words. As Codex
// does, it takes bash -c by its words alone, and leaves out what only prints or formats beside others.
func commandsOf(argv []string) (commands [][]string) {
	if len(argv) != 3 || argv[0] != "bash" {
		return [][]string{argv}
	}
	if words, ok := shellword.Split(argv[2]); ok && argv[1] == "-c" {
		return split(words)
	}
	text, ok := decide.ScriptOf(argv)
	if !ok {
		return [][]string{argv}
	}
	parsed, _ := decide.ParseScript(text)
	for i, command := range parsed {
		words := make([]string, len(command))
		for i, word := range command {
			words[i] = word.Text
		}
		if i == 0 || !slices.Contains([]string{"cut", "head", "sort", "tail", "tr", "true", "uniq", "wc"}, words[0]) {
			commands = append(commands, words)
		}
	}
	if len(commands) > 1 && commands[0][0] == "echo" {
		commands = commands[1:]
	}
	return commands
}

// split splits words at those that join commands.
func split(words []string) (commands [][]string) {
	for len(words) > 0 {
		n := slices.IndexFunc(words, func(w string) bool { return slices.Contains([]string{"&&", "||", "|", ";"}, w) })
		if n < 0 {
			n = len(words)
		}
		if n > 0 {
			commands = append(commands, words[:n])
		}
		words = words[min(n+1, len(words)):]
	}
	return commands
}

// plain describes a command whose options, if it has any, take no values but the number of lines.
func plain(argv []string) protocol.ParsedCommand {
	p := protocol.ParsedCommand{Type: "unknown", Cmd: shellword.Join(argv)}
	if len(argv) == 0 {
		return p
	}
	program, words := argv[0], argv[1:]
	if len(words) == 3 && words[0] == "-n" && countsLines(program, words[1]) {
		program, words = "cat", words[2:]
	}
	operands := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, "-") })
	operand := func(n int) *string {
		if n >= len(operands) {
			return nil
		}
		name := shortPath(operands[n])
		return &name
	}
	switch {
	case program == "cat" && len(words) == 1 && len(operands) == 1:
		p.Type, p.Name = "read", operand(0)
	case program == "ls" && len(operands) < 2:
		p.Type, p.Path = "list_files", operand(0)
	case program == "rg" && slices.Contains(words, "--files") && len(operands) < 2:
		p.Type, p.Path = "search", operand(0)
	case (program == "rg" || program == "grep") && (len(operands) == 1 || len(operands) == 2):
		p.Type, p.Query, p.Path = "search", &operands[0], operand(1)
	}
	return p
}

// countsLines reports whether a word after -n says which lines a program prints.
func countsLines(program, word string) bool {
	const digits = "0123456789"
	switch program {
	case "head":
		return word != "" && strings.Trim(word, digits) == ""
	case "tail":
		return word != "" && strings.Trim(strings.TrimPrefix(word, "+"), digits) == ""
	}
	from, to, two := strings.Cut(strings.TrimSuffix(word, "p"), ",")
	return program == "sed" && strings.HasSuffix(word, "p") && from != "" && strings.Trim(from+to, digits) == "" &&
		two == (to != "")
}

// shortPath returns the last part of a path that is not a common name such as src.
func shortPath(path string) string {
	path = strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	for _, part := range slices.Backward(strings.Split(path, "/")) {
		if !slices.Contains([]string{"", "build", "dist", "node_modules", "src"}, part) {
			return part
		}
	}
	return path
}
