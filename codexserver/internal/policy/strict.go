package policy

import "strings"

// safeStrict narrows safe to programs that do nothing but read what they are
// told to, whatever their arguments and the repository's configuration say.
func safeStrict(cmd []word) bool {
	if !safe(cmd) || !fixed(cmd) {
		return false
	}
	switch cmd[0].text {
	case "git":
		// Apart from branch -D and diff --output: the repository's own
		// configuration names programs that status, diff, log and show run
		// (core.fsmonitor, diff.external, textconv, gpg.program).
		return false
	case "cargo":
		return false // a check runs build scripts and macros
	case "rg":
		return strictRipgrep(cmd[1:])
	}
	return true
}

// strictRipgrep refuses the options that run a program, also cut short and in a
// bundle of short ones.
func strictRipgrep(args []word) bool {
	for _, a := range args {
		switch text := a.text; {
		case text == "--":
			return true
		case strings.HasPrefix(text, "--pre"), strings.HasPrefix(text, "--hos"), strings.HasPrefix(text, "--sea"):
			return false
		case strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.Contains(text, "z"):
			return false
		}
	}
	return true
}
