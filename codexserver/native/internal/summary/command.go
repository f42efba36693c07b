package summary

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// lineRange matches lines that sed -n prints.
var lineRange = lazyregexp.Regexp{Text: `^[0-9]+(,[0-9]+)?p$`}

// summarize describes one command.
func summarize(cmd []string) protocol.ParsedCommand {
	text := shellword.Join(cmd)
	if len(cmd) == 0 {
		return unknown(text)
	}
	args := cmd[1:]
	read := func(file *string) protocol.ParsedCommand {
		if file == nil {
			return unknown(text)
		}
		return protocol.ParsedCommand{Type: "read", Cmd: text, Name: shortPath(file)}
	}
	search := func(query, path *string) protocol.ParsedCommand {
		return protocol.ParsedCommand{Type: "search", Cmd: text, Query: query, Path: shortPath(path)}
	}
	switch cmd[0] {
	case "ls":
		args = operands(skipValues(args, "-I", "-w", "--block-size", "--format", "--time-style", "--color", "--quoting-style"))
		return protocol.ParsedCommand{Type: "list_files", Cmd: text, Path: shortPath(nth(args, 0))}
	case "grep":
		args = operands(args)
		return search(nth(args, 0), nth(args, 1))
	case "rg":
		if found := operands(args); !slices.Contains(args, "--files") {
			return search(nth(found, 0), nth(found, 1))
		} else {
			return search(nil, nth(found, 0))
		}
	case "fd":
		args = operands(skipValues(args, "-t", "--type", "-e", "--extension", "-E", "--exclude", "--search-path"))
		if len(args) == 1 && (args[0] == "." || args[0] == ".." || strings.ContainsAny(args[0], `/\`)) {
			return search(nil, &args[0])
		}
		return search(nth(args, 0), nth(args, 1))
	case "find":
		return search(findPattern(args), nth(slices.DeleteFunc(operands(args), func(a string) bool {
			return a == "!" || a == "(" || a == ")"
		}), 0))
	case "cat":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 1 {
			return read(&args[0])
		}
	case "head":
		return read(lineCountFile(args, ""))
	case "tail":
		return read(lineCountFile(args, "+"))
	case "nl":
		return read(nth(operands(skipValues(args, "-s", "-w", "-v", "-i", "-b")), 0))
	case "sed":
		if len(args) >= 3 && args[0] == "-n" && lineRange.Get().MatchString(args[1]) {
			return read(&args[2])
		}
	}
	return unknown(text)
}

func unknown(text string) protocol.ParsedCommand {
	return protocol.ParsedCommand{Type: "unknown", Cmd: text}
}

// onlyFormats reports whether a command in a pipe only formats its input.
func onlyFormats(cmd []string) bool {
	switch cmd[0] {
	case "wc", "tr", "cut", "sort", "uniq", "xargs", "tee", "column", "awk", "yes", "printf":
		return true
	case "head", "tail":
		return len(cmd) < 3
	case "sed":
		return len(cmd) < 4 || cmd[1] != "-n" || !lineRange.Get().MatchString(cmd[2])
	}
	return false
}

// lineCountFile returns FILE of the arguments -n 5 FILE or -n5 FILE. The number may begin
// with sign.
func lineCountFile(args []string, sign string) *string {
	if len(args) == 0 {
		return nil
	}
	count, ok := strings.CutPrefix(args[0], "-n")
	if !ok {
		return nil
	}
	rest := args[1:]
	if count == "" {
		if len(rest) == 0 {
			return nil
		}
		count, rest = rest[0], rest[1:]
	}
	if count = strings.TrimPrefix(count, sign); count == "" || strings.Trim(count, "0123456789") != "" {
		return nil
	}
	return nth(operands(rest), 0)
}

// findPattern returns the pattern of the first test by name.
func findPattern(args []string) *string {
	for i, a := range args {
		switch a {
		case "-name", "-iname", "-path", "-regex":
			return nth(args, i+1)
		}
	}
	return nil
}

// skipValues returns args without the named options and their values, and without every
// --option=value. It keeps everything after --.
func skipValues(args []string, options ...string) []string {
	var left []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return append(left, args[i+1:]...)
		case strings.HasPrefix(a, "--") && strings.Contains(a, "="):
		case slices.Contains(options, a):
			i++
		default:
			left = append(left, a)
		}
	}
	return left
}

func isOperand(word string) bool { return !strings.HasPrefix(word, "-") }

func operands(args []string) []string {
	var found []string
	for _, a := range args {
		if isOperand(a) {
			found = append(found, a)
		}
	}
	return found
}

func nth(words []string, n int) *string {
	if n >= len(words) {
		return nil
	}
	return &words[n]
}

// shortPath returns the last part of a path that is not a common name such as src.
func shortPath(path *string) *string {
	if path == nil {
		return nil
	}
	whole := strings.TrimRight(strings.ReplaceAll(*path, `\`, "/"), "/")
	parts := strings.Split(whole, "/")
	for _, part := range slices.Backward(parts) {
		switch part {
		case "", "build", "dist", "node_modules", "src":
		default:
			return &part
		}
	}
	return &whole
}
