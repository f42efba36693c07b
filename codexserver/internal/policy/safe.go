package policy

import (
	"slices"
	"strings"
)

// KnownSafe says whether a command is known to change nothing, by the rules of
// September 2025: a program that only reads, named without a folder, or a
// script of bash -lc in which every command is one. The rules are about
// intention and are kept for compatibility; see [KnownSafeStrict] for the ways
// in which some of these programs can be made to write or to run others.
func KnownSafe(argv []string) bool { return everyCommand(argv, safe) }

// KnownSafeStrict is [KnownSafe] without the commands whose arguments, or whose
// configuration, could make them write a file, reach the network or run
// another program.
func KnownSafeStrict(argv []string) bool { return everyCommand(argv, safeStrict) }

// everyCommand applies isSafe to the command, or to each one of its script.
func everyCommand(argv []string, isSafe func(cmd []word) bool) bool {
	cmd := make([]word, len(argv))
	for i, text := range argv {
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
		return true
	case "find":
		return fixed(args) && !slices.ContainsFunc(args, func(a word) bool {
			return slices.Contains([]string{
				"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf",
			}, a.text)
		})
	case "rg":
		return fixed(args) && !slices.ContainsFunc(args, func(a word) bool {
			switch a.text {
			case "--search-zip", "-z", "--pre", "--hostname-bin":
				return true
			}
			return strings.HasPrefix(a.text, "--pre=") || strings.HasPrefix(a.text, "--hostname-bin=")
		})
	case "git":
		return fixed(args) && len(args) > 0 && slices.Contains([]string{"branch", "status", "log", "diff", "show"}, args[0].text)
	case "cargo":
		return len(args) > 0 && !args[0].open && args[0].text == "check"
	case "sed": // an operand could be -f, a script that writes
		return len(args) == 3 && !args[2].open && args[0].text == "-n" && isLineRange(args[1].text) && args[2].text != "" && args[2].text[0] != '-'
	}
	return false
}

// fixed says that the shell hands the words on as they are. A pattern could
// match a file whose name is an option.
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
