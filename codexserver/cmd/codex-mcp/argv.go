package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// arrange rewrites a command line for cobra: it moves the command to the front, since
// flags may be before or after it, and adds the second dash of long flags, since one used
// to be enough. flags are those of all commands. Values, and arguments after --, stay
// unchanged.
func arrange(args []string, flags *pflag.FlagSet) []string {
	if completing(args) {
		return args
	}
	var word, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			after := args[i+1:]
			if word == nil && len(after) > 0 && isWord(after[0]) {
				word, after = after[:1], after[1:]
			}
			return slices.Concat(word, rest, []string{"--"}, after)
		}
		if isWord(arg) {
			if word == nil {
				word = []string{arg}
			} else {
				rest = append(rest, arg)
			}
			continue
		}
		arg, wantsValue := spell(arg, flags)
		rest = append(rest, arg)
		if wantsValue && i+1 < len(args) {
			i++
			rest = append(rest, args[i])
		}
	}
	return slices.Concat(word, rest)
}

// startsServer reports whether a command line has no word but serverWord, and only the flags, which
// are those of the root: none that shows help, and none that is unknown or belongs to another
// command. Letters that are not alone may be a long flag of another command. named means that the
// word is there.
func startsServer(args []string, flags *pflag.FlagSet) (named, starts bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if isWord(arg) {
			if named || arg != serverWord {
				return false, false
			}
			named = true
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		f := flags.Lookup(name)
		if len(arg) == 2 {
			f = flags.ShorthandLookup(arg[1:])
		}
		if f == nil || f.Name == "help" {
			return false, false
		}
		if _, wantsValue := spell(arg, flags); wantsValue {
			i++
		}
	}
	return named, true
}

// isWord reports whether an argument is not a flag.
func isWord(arg string) bool { return len(arg) < 2 || arg[0] != '-' }

// spell adds the second dash of a long flag and reports whether the next argument is the
// flag's value. The name of a long flag is never read as a short flag with its value:
// -config means --config, and -cmodel=o3 means -c model=o3.
func spell(arg string, flags *pflag.FlagSet) (spelt string, wantsValue bool) {
	name, _, attached := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	if f := flags.Lookup(name); f != nil && len(name) > 1 {
		return "--" + strings.TrimPrefix(arg[1:], "-"), !attached && f.NoOptDefVal == ""
	}
	if arg[1] == '-' {
		return arg, false
	}
	f := flags.ShorthandLookup(arg[1:2])
	return arg, f != nil && f.NoOptDefVal == "" && len(arg) == 2
}
