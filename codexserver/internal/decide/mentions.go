package decide

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"mvdan.cc/sh/v3/syntax"
)

// Mentions reports whether a command is, or starts, one that a rule begins, for rules that deny or ask. It looks at all
// that the command may start: every command of a shell's script, in substitutions, here-documents and scripts within
// scripts, and the program behind one that starts what its arguments name, such as env. Options may stand between the
// words of a rule, as in git -C . push. A rule that names a program without a folder also covers it in any folder.
// Where the shell computes a word, or a script cannot be read whole, there may be one, and Mentions returns true.
//
// It mentions too much rather than too little. It does not see what a program starts by itself, what a
// file has that a shell runs, and programs by other names.
func Mentions(rules [][]string, argv []string) bool {
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule []string) bool { return len(rule) == 0 })
	if len(rules) == 0 || len(argv) == 0 {
		return false
	}
	m := &mentions{rules: rules}
	m.command(wordsOf(argv), false, maxNested)
	return m.found
}

const (
	// maxNested is how many programs that start others are followed into each other.
	maxNested = 8
	// maxBehind is how many words of one that starts another are looked through.
	maxBehind = 1000
)

type mentions struct {
	rules [][]string
	found bool // there is, or may be, a command of the rules
}

// compare looks for a rule that is the beginning of a command.
func (m *mentions) compare(words []Word) {
	m.found = m.found || slices.ContainsFunc(m.rules, func(rule []string) bool { return begins(rule, words) })
}

// command looks at a command. It is fed if its script comes from a here-document, which is looked at too.
func (m *mentions) command(words []Word, fed bool, depth int) {
	if len(words) == 0 || m.found {
		return
	}
	m.compare(words)
	switch name := programName(words[0].Text); {
	case words[0].Open: // compare has found it
	case slices.Contains(unread, strings.TrimPrefix(name, "-")):
		m.found = true
	case LooksLikeShell(name):
		m.shell(words[1:], fed, depth)
	case name == "eval": // its words are the script
		var text []string
		for _, word := range words[1:] {
			m.found = m.found || word.Open
			text = append(text, word.Text)
		}
		m.script(strings.Join(text, " "), true, depth-1)
	case name == "source" || name == ".":
		m.found = m.found || slices.ContainsFunc(words[1:], func(w Word) bool { return w.Open || !fed && isInput(w) })
	// only looks it up
	case name == "command" && len(words) > 1 && slices.Contains([]string{"-v", "-V"}, words[1].Text):
	case name == "find" || name == "fd":
		m.after(words[1:], depth)
	case slices.Contains(starters, name) || strings.HasPrefix(name, "ld") && strings.Contains(name, ".so"):
		m.behind(name, words[1:], fed, depth)
	}
}

// begins reports whether a rule is the beginning of a command. Between its words, options with a value may stand.
func begins(rule []string, words []Word) bool {
	if words[0].Open || !names(rule[0], words[0].Text) {
		return words[0].Open
	}
	// now has what holds for the rest of the words after each word, for the rest of the rule after next.
	next := slices.Repeat([]bool{true}, len(words)+2)
	for _, want := range slices.Backward(rule[1:]) {
		now := make([]bool, len(words)+2)
		for i, word := range slices.Backward(words[1:]) {
			at := i + 1
			now[at] = word.Open || word.Text == want && next[at+1]
			if strings.HasPrefix(word.Text, "-") {
				now[at] = now[at] || now[at+1] || now[at+2] && !strings.Contains(word.Text, "=")
			}
		}
		next = now
	}
	return next[1]
}

// names reports whether the program of a rule may be the one of a command. If the rule names a folder, so must the
// command. A path of Windows stands for all names of its program, which a PATH may find too.
func names(rule, program string) bool {
	anywhere := len(rule) > 1 && rule[1] == ':' || !strings.Contains(rule, "/")
	name, other := programName(rule), programName(program)
	return plainName(rule) == plainName(program) || anywhere && (name == other || isShort(other, name))
}

// isShort reports whether a name may be the short one that Windows gives to a long one: its beginning, or a part of
// that and a sum, before ~ and a number, as in DOCKER~1 for docker-compose.
func isShort(name, long string) bool {
	stem, number, ok := strings.Cut(name, "~")
	if !ok || len(long) <= 8 || len(stem) < 2 || number == "" || number[0] < '0' || number[0] > '9' {
		return false
	}
	return strings.HasPrefix(long, stem) || len(stem) == 6 && long[:2] == stem[:2]
}

// programName returns the name of a program without its folder, so that names can be compared.
func programName(program string) string { return path.Base(plainName(program)) }

// plainName returns one of the names by which Windows knows a program: it does not distinguish letter case and the two
// slashes, adds extensions, and leaves out dots and spaces at the end. Other systems distinguish the names, and
// rules that deny and ask do not.
func plainName(program string) string {
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(program, "="), `\`, "/")) // zsh finds =ssh in PATH
	name = strings.TrimRight(name, ". ")
	for _, extension := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, extension)
	}
	return name
}

func (m *mentions) shell(args []Word, fed bool, depth int) {
	script, operands := len(args), 0
	for i, arg := range args {
		option := strings.HasPrefix(arg.Text, "-") || strings.HasPrefix(arg.Text, "+")
		cluster := option && !strings.HasPrefix(arg.Text, "--")
		switch {
		case arg.Open && (script == len(args) || i <= script+1): // later it is an argument of the script
			m.found = true
		case script == len(args) && cluster && strings.Contains(arg.Text, "c"):
			script = i
		case cluster && strings.Contains(arg.Text, "s") && script == len(args) && !fed: // it reads its input
			m.found = true
		}
		if !option && !isInput(arg) {
			operands++
		}
	}
	m.found = m.found || operands == 0 && !fed
	for i, arg := range args {
		if !arg.Open {
			m.script(arg.Text, i == script+1 || i > script && strings.ContainsAny(arg.Text, " \t\n"), depth)
		}
	}
}

// script looks at the commands in a text. Whole is true if a shell runs it all, so that what cannot be parsed counts.
func (m *mentions) script(text string, whole bool, depth int) {
	if depth <= 0 {
		m.found = true
		return
	}
	for stmt, err := range Statements(text) {
		if err != nil { // the shell runs what comes before it
			m.found = m.found || whole || errors.Is(err, ErrScript)
			continue
		}
		var data syntax.Node // of a here-document
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Stmt:
				m.statement(n, depth)
			case *syntax.SglQuoted:
				m.computed(memberOf.Get().FindString(n.Value), depth)
			case *syntax.Redirect:
				if n.Hdoc != nil && len(n.Hdoc.Parts) > 0 {
					data = n.Hdoc.Parts[0]
				}
			case *syntax.Lit:
				if n != data {
					m.computed(memberOf.Get().FindString(unescape(n.Value, "")), depth)
				}
			case *syntax.Assign:
				if n.Value != nil { // PS4 is computed, and so is ${X@P}
					m.computed(speak(n.Value).Text, depth)
				}
				m.found = m.found || n.Name != nil &&
					slices.Contains([]string{"BASH_ALIASES", "BASH_CMDS"}, n.Name.Value)
			}
			return true
		})
	}
}

// computed looks at the substitutions in a text that the shell may compute although it is quoted.
func (m *mentions) computed(text string, depth int) {
	if strings.Contains(text, "$(") || strings.Contains(text, "`") {
		m.script("cat <<EOF\n"+text+"\nEOF", false, depth-1)
	}
}

// memberOf matches what may name a member of an array. Commands such as read and printf -v compute the brackets.
var memberOf = lazyregexp.Regexp{Text: `(?s)\[.*`}

// statement looks at the command of a statement, and at what it is fed.
func (m *mentions) statement(stmt *syntax.Stmt, depth int) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	words := make([]Word, len(call.Args))
	for i, arg := range call.Args {
		words[i] = speak(arg)
	}
	fed := false
	for _, r := range stmt.Redirs {
		text := r.Hdoc
		switch r.Op {
		case syntax.WordHdoc:
			text = r.Word
		case syntax.Hdoc, syntax.DashHdoc:
		default:
			continue
		}
		if fed = true; text != nil && runsInput(words) {
			said := input(text)
			m.found = m.found || said.Open
			m.script(said.Text, true, depth-1)
		}
	}
	m.command(words, fed, depth-1)
}

func input(w *syntax.Word) Word {
	var b strings.Builder
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return speak(w)
		}
		b.WriteString(lit.Value)
	}
	return Word{Text: b.String()}
}

// runsInput reports whether a command may run what it reads.
func runsInput(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool {
		name := programName(w.Text)
		return w.Open || LooksLikeShell(name) || slices.Contains(unread, name) ||
			slices.Contains([]string{"source", ".", "eval", "xargs", "parallel"}, name)
	})
}

// isInput reports whether a word names what a shell reads, as /dev/stdin and /dev/fd/3.
func isInput(w Word) bool { return strings.HasPrefix(w.Text, "/dev/") }

// behind looks at the words of a program that starts what they name: each may begin a command, or be a script.
func (m *mentions) behind(name string, args []Word, fed bool, depth int) {
	if len(args) > maxBehind || depth <= 0 {
		m.found = true
		return
	}
	reads := name == "xargs" || name == "parallel"
	if reads { // what it reads comes last, or where a word says so
		m.found = m.found || slices.ContainsFunc(args, places)
		args = append(slices.Clone(args), Word{Open: true})
	}
	for i, arg := range args {
		if arg.Open { // what is read follows another word, which may start it
			m.found = m.found || !reads || i < len(args)-1 ||
				slices.ContainsFunc(args, func(w Word) bool { return slices.Contains(starters, programName(w.Text)) })
			continue
		}
		rest := args[i:]
		if first := programName(arg.Text); LooksLikeShell(first) || first == "eval" || first == "find" ||
			first == "fd" || slices.Contains(unread, first) {
			m.command(rest, fed, depth-1)
		}
		m.compare(rest)
		text := arg.Text
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

// places reports whether a word of xargs or parallel is, or names, the place of what it reads.
func places(w Word) bool {
	return strings.Contains(w.Text, "{}") || len(w.Text) > 2 && strings.HasPrefix(w.Text, "-i") ||
		slices.ContainsFunc([]string{"-I", "-J", "--replace"},
			func(option string) bool { return strings.HasPrefix(w.Text, option) })
}

func (m *mentions) after(args []Word, depth int) {
	for i, arg := range args {
		if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"},
			arg.Text) || arg.Open {
			words := slices.Clone(args[i+1:])
			for k, w := range words {
				words[k].Open = w.Open || strings.Contains(w.Text, "{}")
			}
			m.command(words, false, depth-1)
		}
	}
}

// unread are shells whose scripts have another syntax.
var unread = []string{
	"cmd", "cscript", "csh", "elvish", "fish", "mshta", "nu", "powers~1", "powershell", "pwsh", "tcsh", "wscript",
	"wsl", "xonsh",
}

// starters are programs, and commands of shells, that start what their arguments name.
var starters = []string{
	"-", "alias", "arch", "at", "batch", "builtin", "bunx", "busybox", "bwrap", "caffeinate", "capsh", "catchsegv",
	"choom", "chroot", "chrt", "command", "compgen", "coproc", "cpulimit", "dbus-launch", "dbus-run-session", "doas",
	"eatmydata", "entr", "env", "exec", "expect", "faketime", "fakeroot", "fc", "firejail", "flock", "gdb", "hash",
	"i386", "ionice", "linux32", "linux64", "ltrace", "mapfile", "mise", "nice", "nocorrect", "noglob", "nohup", "npx",
	"nsenter", "numactl", "parallel", "perf", "pkexec", "pnpx", "prlimit", "proot", "proxychains", "readarray",
	"repeat",
	"rlwrap", "runuser", "script", "setarch", "setpriv", "setsid", "ssh-agent", "start-stop-daemon", "stdbuf",
	"strace", "su", "sudo", "systemd-inhibit", "systemd-run", "taskset", "time", "timeout", "torsocks", "toybox",
	"trap", "tsocks", "unbuffer", "unshare", "uvx", "valgrind", "watch", "x86_64", "xargs", "xvfb-run",
}
