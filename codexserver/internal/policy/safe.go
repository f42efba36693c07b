package policy

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/script"
)

// KnownSafe reports whether a command is known to do nothing but read: a program
// of a short list, named without a folder and with options of a list, or a
// script of bash -lc in which every command is one. Such a command may run
// without a question, but not without a sandbox: the user's profile, a
// repository's configuration and a program of the same name that comes first in
// PATH can make it do more than its words say. [Decide] sees to that.
func KnownSafe(argv []string) bool { return everyCommand(argv, safe) }

// KnownSafeStrict is [KnownSafe] without git, which starts the programs that a
// repository's configuration names, and without patterns that the shell expands.
func KnownSafeStrict(argv []string) bool { return everyCommand(argv, safeStrict) }

// everyCommand applies isSafe to the command, or to each one of its script.
func everyCommand(argv []string, isSafe func(cmd []script.Word) bool) bool {
	cmd := make([]script.Word, len(argv))
	for i, text := range argv {
		if strings.Contains(text, "\x00") {
			return false // the system would cut the word short
		}
		cmd[i] = script.Word{Text: text}
	}
	if isSafe(cmd) {
		return true
	}
	text, ok := script.Of(argv)
	if !ok {
		return false
	}
	commands, ok := script.Parse(text)
	return ok && !slices.ContainsFunc(commands, func(cmd []script.Word) bool { return !isSafe(cmd) })
}

func safe(cmd []script.Word) bool {
	if len(cmd) == 0 || cmd[0].Open {
		return false
	}
	args := cmd[1:]
	switch cmd[0].Text {
	case "cat", "cd", "echo", "false", "grep", "head", "ls", "nl", "pwd", "tail", "true", "wc", "which":
		return true // no option of theirs writes, or runs a program
	case "find":
		return fixed(args) && findOptions.cover(args)
	case "rg":
		return fixed(args) && ripgrepOptions.cover(args)
	case "git":
		return fixed(args) && safeGit(args)
	case "sed": // an operand could be -f, a script that writes
		return len(args) == 3 && !args[2].Open && args[0].Text == "-n" && isLineRange(args[1].Text) && args[2].Text != "" && args[2].Text[0] != '-'
	}
	return false
}

func safeStrict(cmd []script.Word) bool { return safe(cmd) && fixed(cmd) && cmd[0].Text != "git" }

// fixed reports whether the shell hands the words on as they are. A pattern
// could match a file whose name is an option.
func fixed(words []script.Word) bool {
	return !slices.ContainsFunc(words, func(w script.Word) bool { return w.Open })
}

// isLineRange recognises Np and N,Mp.
func isLineRange(s string) bool {
	s, ok := strings.CutSuffix(s, "p")
	if !ok {
		return false
	}
	from, to, two := strings.Cut(s, ",")
	return isDigits(from) && (!two || isDigits(to))
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
