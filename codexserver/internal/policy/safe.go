package policy

import (
	"slices"
	"strings"
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
func everyCommand(argv []string, isSafe func(cmd []word) bool) bool {
	cmd := make([]word, len(argv))
	for i, text := range argv {
		if strings.Contains(text, "\x00") {
			return false // the system would cut the word short
		}
		cmd[i] = word{text: text}
	}
	if isSafe(cmd) {
		return true
	}
	text, ok := bashScript(argv)
	if !ok {
		return false
	}
	s, ok := parseScript(text)
	return ok && !slices.ContainsFunc(s.commands, func(cmd []word) bool { return !isSafe(cmd) })
}

func safe(cmd []word) bool {
	if len(cmd) == 0 || cmd[0].open {
		return false
	}
	args := cmd[1:]
	switch cmd[0].text {
	case "cat", "cd", "echo", "false", "grep", "head", "ls", "nl", "pwd", "tail", "true", "wc", "which":
		return true // no option of theirs writes, or runs a program
	case "find":
		return fixed(args) && findOptions.cover(args)
	case "rg":
		return fixed(args) && ripgrepOptions.cover(args)
	case "git":
		return fixed(args) && safeGit(args)
	case "sed": // an operand could be -f, a script that writes
		return len(args) == 3 && !args[2].open && args[0].text == "-n" && isLineRange(args[1].text) && args[2].text != "" && args[2].text[0] != '-'
	}
	return false
}

func safeStrict(cmd []word) bool { return safe(cmd) && fixed(cmd) && cmd[0].text != "git" }

// fixed reports whether the shell hands the words on as they are. A pattern
// could match a file whose name is an option.
func fixed(words []word) bool {
	return !slices.ContainsFunc(words, func(w word) bool { return w.open })
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
