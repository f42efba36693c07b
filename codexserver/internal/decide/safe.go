package decide

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// KnownSafe reports whether a command is known to only read. Its program is on a short list and named without a folder,
// and its options are on the list of the program. In a script of bash -lc every command must be like that. Strict
// leaves out git, which starts programs that a repository's configuration names, and patterns that the shell expands.
//
// Such a command may run without a question, but only in a sandbox, which [Exec] ensures. The user's profile, a
// repository's configuration, or a program of the same name earlier in PATH can make it do more than its words say.
func KnownSafe(argv []string, strict bool) bool {
	if strings.Contains(strings.Join(argv, ""), "\x00") {
		return false // the system would end the word there
	}
	isSafe := func(cmd []Word) bool { return safe(cmd) && (!strict || fixed(cmd) && cmd[0].Text != "git") }
	if isSafe(wordsOf(argv)) {
		return true
	}
	text, _ := ScriptOf(argv)
	commands, ok := ParseScript(text) // not of ""
	return ok && !slices.ContainsFunc(commands, func(cmd []Word) bool { return !isSafe(cmd) })
}

func safe(cmd []Word) bool {
	if len(cmd) == 0 || cmd[0].Open {
		return false
	}
	args := cmd[1:]
	switch cmd[0].Text {
	// whatever their words
	case "cat", "cd", "echo", "false", "grep", "head", "ls", "nl", "pwd", "tail", "true", "wc", "which":
		return true
	case "find":
		return fixed(args) && covers(&findOptions, args)
	case "rg":
		return fixed(args) && covers(&ripgrepOptions, args)
	case "git":
		return fixed(args) && safeGit(args)
	case "sed": // a last word such as -fFILE would run a script that writes
		return len(args) == 3 && !args[2].Open && args[0].Text == "-n" && lineRange.Get().MatchString(args[1].Text) &&
			args[2].Text != "" && args[2].Text[0] != '-'
	}
	return false
}

// fixed reports whether the shell passes the words on unchanged. A pattern could match a file whose name is an option.
func fixed(words []Word) bool {
	return !slices.ContainsFunc(words, func(w Word) bool { return w.Open })
}

// covers reports whether every word that begins with a dash is one of the known options, which are not
// abbreviated. The program may read such a word as an option, as the value of another, or as an operand.
// covers does not try to find out which, so each must be harmless as an option.
func covers(known *lazyregexp.Regexp, words []Word) bool {
	return !slices.ContainsFunc(words, func(w Word) bool {
		return strings.HasPrefix(w.Text, "-") && !known.Get().MatchString(w.Text)
	})
}

// findOptions are the tests of find and the actions that print. The numbers are values, as in -mtime -7.
var findOptions = lazyregexp.Regexp{Text: `^-(?:[HLP]|[0-9]+[a-zA-Z]*|newer[aBcm][aBcmt]|a|amin|and|atime|cmin|ctime|` +
	`daystart|depth|empty|executable|false|` +
	`files0-from|follow|group|iname|inum|ipath|iregex|links|ls|maxdepth|mindepth|mmin|mount|mtime|name|newer|not|o|` +
	`or|path|perm|print|print0|printf|` +
	`prune|quit|readable|regex|regextype|samefile|size|true|type|user|wholename|writable|xdev)$`}

// ripgrepOptions leave out --pre, --hostname-bin, -z and --search-zip, which start a program.
var ripgrepOptions = lazyregexp.Regexp{Text: `^(?:-[.0FHILNPSUVabchilnopqsuvwx]*(?:[ABCEMTdefgjmrt].*)?|--|` +
	`--(?:after-context|before-context|` +
	`case-sensitive|color|column|context|count|count-matches|encoding|files|files-with-matches|files-without-match|` +
	`fixed-strings|follow|glob|heading|` +
	`help|hidden|iglob|ignore-case|invert-match|json|line-number|line-regexp|max-columns|max-count|max-depth|` +
	`max-filesize|multiline|no-config|no-filename|` +
	`no-heading|no-ignore|no-ignore-vcs|no-line-number|no-messages|null|only-matching|passthru|pcre2|quiet|regexp|` +
	`replace|smart-case|sort|sortr|stats|` +
	`text|trim|type|type-list|type-not|unrestricted|version|vimgrep|with-filename|word-regexp)(?:=.*)?)$`}

// lineRange is Np or N,Mp.
var lineRange = lazyregexp.Regexp{Text: `^[0-9]+(?:,[0-9]+)?p$`}
