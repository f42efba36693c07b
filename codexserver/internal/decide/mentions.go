package decide

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Mentions reports whether a command is, or starts, one that a rule begins, for rules that deny or ask. It
// looks at all that the command may start: every command of
// a shell's script, in substitutions, here-documents and scripts within scripts, and the program behind
// one that starts what its arguments name, such as env. Options may stand between the words of a rule,
// as in git -C . push. A rule that names a program without a folder also covers it in any folder. Where the
// shell computes a word, or a script cannot be read whole, there may be one, and Mentions returns true.
//
// It mentions too much rather than too little. It does not see what a program starts by itself, what a
// file has that a shell runs, and programs by other names.
func Mentions(rules [][]string, argv []string) bool {
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule []string) bool { return len(rule) == 0 })
	if len(rules) == 0 || len(argv) == 0 {
		return false
	}
	m := &mentions{rules: rules}
	words := make([]spoken, len(argv))
	for i, text := range argv {
		words[i] = spoken{text, true}
	}
	m.command(words, false, maxNested)
	return m.found
}

const (
	// maxNested is how many programs that start others are followed into each other.
	maxNested = 8
	// maxBehind is how many words of one that starts another are looked through.
	maxBehind = 1000
)

// spoken is a word as the program gets it.
type spoken struct {
	text  string
	known bool // false if the shell computes it; it may then be any word, several or none
}

// mentions looks for the rules.
type mentions struct {
	rules [][]string
	found bool
}

// may records that there may be a command of the rules.
func (m *mentions) may() { m.found = true }

// compare looks for a rule that is the beginning of a command.
func (m *mentions) compare(words []spoken) {
	m.found = m.found || slices.ContainsFunc(m.rules, func(rule []string) bool { return begins(rule, words) })
}

// command looks at a command. It is fed if its script comes from a here-document, which is looked at too.
func (m *mentions) command(words []spoken, fed bool, depth int) {
	if len(words) == 0 || m.found {
		return
	}
	m.compare(words)
	switch name := programName(words[0].text); {
	case !words[0].known: // it may be any
	case slices.Contains(unread, strings.TrimPrefix(name, "-")):
		m.may()
	case LooksLikeShell(name):
		m.shell(words[1:], fed, depth)
	case name == "eval":
		m.eval(words[1:], depth)
	case name == "command" && len(words) > 1 && slices.Contains([]string{"-v", "-V"}, words[1].text): // only looks it up
	case name == "find" || name == "fd":
		m.after(words[1:], depth)
	case slices.Contains(starters, name) || strings.HasPrefix(name, "ld") && strings.Contains(name, ".so"):
		m.behind(name, words[1:], fed, depth)
	}
}

// begins reports whether a rule is the beginning of a command, as far as its words are known. Between its
// words, options of the command may stand, each with a value.
func begins(rule []string, words []spoken) bool {
	switch {
	case !words[0].known:
		return true
	case words[0].text != rule[0] && (strings.Contains(rule[0], "/") || programName(words[0].text) != programName(rule[0])):
		return false
	}
	// now has what holds for the rest of the words after each word, for the rest of the rule after next.
	next := slices.Repeat([]bool{true}, len(words)+2)
	for _, want := range slices.Backward(rule[1:]) {
		now := make([]bool, len(words)+2)
		for i, word := range slices.Backward(words[1:]) {
			at := i + 1
			now[at] = !word.known || word.text == want && next[at+1]
			if strings.HasPrefix(word.text, "-") {
				now[at] = now[at] || now[at+1] || now[at+2] && !strings.Contains(word.text, "=")
			}
		}
		next = now
	}
	return next[1]
}

// programName returns the name of a program without its folder, so that names can be compared.
func programName(program string) string {
	name := path.Base(strings.ReplaceAll(strings.TrimPrefix(program, "="), `\`, "/")) // zsh finds =ssh in PATH
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// shell looks at the arguments of a shell.
func (m *mentions) shell(args []spoken, fed bool, depth int) {
	script, operands := len(args), 0
	for i, arg := range args {
		option := strings.HasPrefix(arg.text, "-") || strings.HasPrefix(arg.text, "+")
		cluster := option && !strings.HasPrefix(arg.text, "--")
		switch {
		case !arg.known && (script == len(args) || i <= script+1): // later it is an argument of the script
			m.may()
		case script == len(args) && cluster && strings.Contains(arg.text, "c"):
			script = i
		case cluster && strings.Contains(arg.text, "s") && script == len(args) && !fed: // it reads its input
			m.may()
		}
		if !option {
			operands++
		}
	}
	if operands == 0 && !fed {
		m.may()
	}
	for i, arg := range args {
		if arg.known {
			m.script(arg.text, i == script+1 || i > script && strings.ContainsAny(arg.text, " \t\n"), depth)
		}
	}
}

// script looks at every command in a text that a shell may run. Whole is true if it surely does, so that a
// text that cannot be parsed hides something.
func (m *mentions) script(text string, whole bool, depth int) {
	if depth <= 0 {
		m.may()
		return
	}
	for stmt, err := range Statements(text) {
		if err != nil {
			if whole || errors.Is(err, ErrScript) {
				m.may()
			}
			continue // the shell runs what comes before the error
		}
		syntax.Walk(stmt, func(n syntax.Node) bool {
			if stmt, ok := n.(*syntax.Stmt); ok {
				m.statement(stmt, depth)
			}
			return true
		})
	}
}

// statement looks at the command of a statement, and at what it is fed.
func (m *mentions) statement(stmt *syntax.Stmt, depth int) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	words := make([]spoken, len(call.Args))
	for i, arg := range call.Args {
		words[i] = speak(arg)
	}
	fed := false
	for _, r := range stmt.Redirs {
		text := r.Hdoc
		switch {
		case r.Op == syntax.WordHdoc:
			text = r.Word
		case r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc:
			continue
		}
		if fed = true; text == nil || !runsInput(words) {
			continue
		}
		if said := input(text); said.known {
			m.script(said.text, true, depth-1)
		} else {
			m.may()
		}
	}
	m.command(words, fed, depth-1)
}

// input returns the text of a here-document or a here-string.
func input(w *syntax.Word) spoken {
	var b strings.Builder
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return speak(w)
		}
		b.WriteString(lit.Value)
	}
	return spoken{b.String(), true}
}

// runsInput reports whether a command may run what it reads.
func runsInput(words []spoken) bool {
	return slices.ContainsFunc(words, func(w spoken) bool {
		name := programName(w.text)
		return !w.known || LooksLikeShell(name) || slices.Contains(unread, name) || slices.Contains([]string{"source", ".", "eval", "xargs", "parallel"}, name)
	})
}

// eval looks at the script that eval makes of its words.
func (m *mentions) eval(args []spoken, depth int) {
	var text []string
	for _, arg := range args {
		if !arg.known {
			m.may()
			return
		}
		text = append(text, arg.text)
	}
	m.script(strings.Join(text, " "), true, depth-1)
}

// behind looks at the words of a program that starts what they name: a command may begin at any of them, and
// any may be a script.
func (m *mentions) behind(name string, args []spoken, fed bool, depth int) {
	if len(args) > maxBehind || depth <= 0 {
		m.may()
		return
	}
	reads := name == "xargs" || name == "parallel"
	if reads {
		args = fromInput(args)
	}
	for i, arg := range args {
		if !arg.known {
			// What is read follows another word, which may start it.
			if !reads || i < len(args)-1 || slices.ContainsFunc(args, func(w spoken) bool { return slices.Contains(starters, programName(w.text)) }) {
				m.may()
			}
			continue
		}
		rest := args[i:]
		if first := programName(arg.text); LooksLikeShell(first) || first == "eval" || first == "find" || first == "fd" || slices.Contains(unread, first) {
			m.command(rest, fed, depth-1)
		}
		m.compare(rest)
		text := arg.text
		if name == "alias" {
			_, text, _ = strings.Cut(text, "=")
		} else if !strings.ContainsAny(text, " \t\n;&|") {
			continue
		}
		m.script(text, false, depth-1)
		if after, ok := strings.CutPrefix(text, "-"); ok && after != "" { // env -S'…' and --split-string=…
			m.script(after[1:], false, depth-1)
			_, value, _ := strings.Cut(after, "=")
			m.script(value, false, depth-1)
		}
	}
}

// fromInput returns the words of xargs with those that it reads.
func fromInput(args []spoken) []spoken {
	place := "{}"
	for i, arg := range args {
		for _, option := range []string{"-I", "-J", "-i", "--replace="} {
			after, ok := strings.CutPrefix(arg.text, option)
			if ok && after != "" {
				place = after
			} else if ok && i+1 < len(args) && option != "-i" {
				place = args[i+1].text
			}
		}
	}
	return append(placed(args, place), spoken{})
}

// placed returns the words, of which those that have the place of another are not known.
func placed(args []spoken, place string) []spoken {
	out := slices.Clone(args)
	for i, arg := range out {
		out[i].known = arg.known && !strings.Contains(arg.text, place)
	}
	return out
}

// after looks at the commands that find runs.
func (m *mentions) after(args []spoken, depth int) {
	for i, arg := range args {
		if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, arg.text) || !arg.known {
			m.command(placed(args[i+1:], "{}"), false, depth-1)
		}
	}
}

// unread are shells whose scripts have another syntax.
var unread = []string{"cmd", "csh", "elvish", "fish", "nu", "powershell", "pwsh", "tcsh", "xonsh"}

// starters are programs, and commands of shells, that start what their arguments name.
var starters = []string{
	"-", "alias", "arch", "at", "batch", "builtin", "bunx", "busybox", "bwrap", "caffeinate", "capsh", "catchsegv",
	"choom", "chroot", "chrt", "command", "coproc", "cpulimit", "dbus-launch", "dbus-run-session", "doas",
	"eatmydata", "entr", "env", "exec", "expect", "faketime", "fakeroot", "firejail", "flock", "gdb", "hash",
	"i386", "ionice", "linux32", "linux64", "ltrace", "mise", "nice", "nocorrect", "noglob", "nohup", "npx",
	"nsenter", "numactl", "parallel", "perf", "pkexec", "pnpx", "prlimit", "proot", "proxychains", "repeat",
	"rlwrap", "runuser", "script", "setarch", "setpriv", "setsid", "ssh-agent", "start-stop-daemon", "stdbuf",
	"strace", "su", "sudo", "systemd-inhibit", "systemd-run", "taskset", "time", "timeout", "torsocks", "toybox",
	"trap", "tsocks", "unbuffer", "unshare", "uvx", "valgrind", "watch", "x86_64", "xargs", "xvfb-run",
}
