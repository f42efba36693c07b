package decide_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// TestNames has rules that name a program of Windows, each in one way, and commands that name it in all.
func TestNames(t *testing.T) {
	names := []string{"tool", "TOOL", "tool.exe", "Tool.CMD", `C:\bin\tool.exe`, "C:/bin/tool", `c:\other\TOOL.bat`}
	for _, rule := range names {
		for _, program := range names {
			must.Equal(t, "a rule for "+rule+" covers "+program, true, decide.Mentions([][]string{{rule}}, []string{program}))
		}
		must.Equal(t, "a rule for "+rule+" covers tools", false, decide.Mentions([][]string{{rule}}, []string{"tools"}))
	}
	for program, short := range map[string]bool{
		"DOCKER~1.EXE": true, `C:\bin\docker~12`: true, "DOA1B2~1": true, "docker": false, "dock~": false, "POD~1": false, "d~1": false,
	} {
		must.Equal(t, "a rule for docker-compose and "+program, short, decide.Mentions([][]string{{"docker-compose"}}, []string{program}))
	}
}

// TestMentions looks for ssh, git push, docker compose up and ./deploy in commands that hide them, and in
// those that only look so. A command is words after bars, or a script of bash -lc.
func TestMentions(t *testing.T) {
	rules := [][]string{{"ssh"}, {"git", "push"}, {"docker", "compose", "up"}, {"./deploy"}, {}}
	const yes, unclear, no = true, true, false // unclear is what may be one
	for _, tt := range []struct {
		argv string
		want bool
	}{
		{"ssh|host", yes}, {"sshd", no}, {"/usr/bin/ssh|host", yes}, {"../bin/ssh", yes}, {`C:\tools\SSH.exe|host`, yes}, {"SSH.exe. |host", yes},
		{"ssh.sh", no}, {"cmd|/c|ls", unclear}, {`C:\Windows\System32\CMD.EXE|/c|ls`, unclear}, {"env|WScript.exe|x.js", unclear},
		{`C:\Windows\POWERS~1.EXE|-enc|x`, unclear}, {"time|git|log|HEAD~1", no},
		{"|ssh", no}, // a program without a name
		{"./deploy", yes}, {`.\Deploy.cmd`, yes}, {"deploy", no}, {"/work/deploy", no}, {"git|push|--force", yes}, {"git|status", no},
		{"git|log|push", no}, {"git", no},

		{"git|-C|.|push", yes}, {"git|-c|a=b|--no-pager|push", yes}, {"git|--git-dir=x|push", yes}, {"git|--git-dir|x|push|origin", yes},
		{"git|-C|.|status|push", no}, {"docker|-H|tcp://x|compose|-f|y|up", yes}, {"docker|compose|-f|y|down", no},

		{"env|ssh|host", yes}, {"env|-i|A=1|git|-C|.|push", yes}, {"env|-S|ssh host", yes}, {"env|-Sssh host", yes},
		{"env|--split-string=ssh host", yes}, {"env|sshd|host", no}, {"nohup|ssh|host", yes}, {"command|ssh|host", yes}, {"command|-p|ssh|host", yes},
		{"command|-v|ssh", no}, {"timeout|-k|1|5|ssh|host", yes}, {"xargs|ssh", yes}, {"xargs|-n|1|git|-C|.", unclear}, {"xargs|git|log", no},
		{"xargs|env", unclear}, {"xargs|-I{}|git|{}", unclear}, {"xargs|-I|%|%|host", unclear},
		{"xargs|-I{}|git|add|{}", unclear}, // what it reads comes last, for all that is known
		{"xargs|wc|-l", no}, {"sudo|sh|-c|ssh host", yes}, {"su|-c|ssh host", yes}, {"busybox|sh|-c|ssh host", yes}, {"flock|/x|-c|ssh host", yes},
		{"script|-qc|ssh host|/dev/null", yes}, {"/lib64/ld-linux-x86-64.so.2|/usr/bin/ssh", yes}, {"nohup|env|nice|setsid|stdbuf|-o0|git|push", yes},
		{"env|echo|x", no},
		{"env|" + strings.Repeat("x|", 1001) + "ssh", unclear},
		{"find|.|-exec|ssh|{}|;", yes}, {"find|.|-name|x|-execdir|env|git|push|;", yes}, {"find|.|-ok|{}|;", unclear}, {"find|.|-name|ssh", no},
		{"find|.|-exec|grep|ssh|{}|+", no}, {"find|.|-exec|sh|-c|wc \"$1\"|_|{}|;", no}, {"find|.|-exec|sh|-c|ssh \"$1\"|_|{}|;", yes},
		{"fd|-x|ssh", yes}, {"echo|ssh|host", no}, {"echo|git push", no},

		{"bash|-lc|make && git push", yes}, {"/bin/sh|-c|if true; then (ssh host); fi", yes}, {"bash|-lc|bash -c 'git push'", yes},
		{`sh|-c|sh -c 'dash -c "git push"'`, yes}, {"./bash|--norc|-c|git push", yes}, {"zsh|-xc|if x; then (git push) & fi", yes},
		{"sh|git push", yes}, {"bash|script.sh", no}, {"bash|-lc|x=$(ssh host)", yes}, {"bash|-lc|echo `ssh host`", yes},
		{"bash|-lc|cat <(ssh host)", yes}, {"bash|-lc|A=1 'git' pu\\sh $X", yes}, {"bash|-lc|s''s\"\"h host", yes}, {"bash|-lc|git \\\n push", yes},
		{"bash|-lc|f() { ssh host; }; f", yes}, {"bash|-lc|coproc ssh host", yes}, {"bash|-lc|trap 'ssh host' EXIT", yes},
		{"bash|-lc|trap ssh EXIT", yes}, {"sh|-c|alias x='git push'\nx", yes}, {"bash|-lc|hash -p /usr/bin/ssh x; x host", yes},
		{"bash|-lc|read 'a[$(ssh host)]'", yes}, {"bash|-lc|printf -v \"a[\\$(ssh host)]\" x", yes}, {"bash|-lc|A='a[`ssh host`]'; ((A))", yes},
		{"bash|-lc|A='$(ssh host)'; echo ${A@P}", yes},
		{"bash|-lc|BASH_CMDS[x]=/usr/bin/ssh; x host", yes},
		{"bash|-lc|A[1]='x'; echo $A", no}, {"bash|-lc|[[ 'a[$(ssh host)]' -eq 1 ]]", yes},
		{"bash|-lc|cat <<'E' >x.md\n[text] `ssh host`\nE", no},
		{"bash|-lc|sed -n '/[`x`]/p' ssh", no}, {"bash|-lc|git commit -m 'use `ssh host`'", no}, {"bash|-lc|compgen -C 'ssh host'", yes},
		{"bash|-lc|mapfile -C ssh -c 1 A <f", yes}, {"zsh|-c|=ssh host", yes}, {"zsh|-c|noglob ssh host", yes}, {"bash|-lc|git push\n(", yes},
		{"bash|-lc|git status && wc -l x", no},

		{"bash|-lc|eval 'ssh host'", yes}, {"bash|-lc|eval \"git\" pu'sh'", yes}, {"bash|-lc|eval \"$X\"", unclear}, {"bash|-lc|eval 'echo x'", no},
		{"bash|-lc|env eval ssh", yes}, {"bash|-lc|$'ssh' host", yes}, {`bash|-lc|$'\x73sh' host`, unclear}, {`bash|-lc|git $'\x70ush'`, unclear},
		{`bash|-lc|git $'push'`, yes}, {`bash|-lc|echo $'\x73sh'`, no}, {"bash|-lc|x=ssh; $x host", unclear}, {"bash|-lc|git $X", unclear},
		{"bash|-lc|git $X push", unclear}, {"bash|-lc|git status $X", no}, {"bash|-lc|git -C \"$X\" push", yes},
		{"bash|-lc|$(echo ssh) host", unclear}, {"bash|-lc|\"${a[@]}\"", unclear}, {"bash|-lc|/usr/bin/ss? host", unclear},
		{"bash|-lc|/usr/bin/ss[h] host", unclear}, {"bash|-lc|{ssh,host}", unclear}, {"bash|-lc|wc *.go {a,b}", no}, {"bash|-lc|~/bin/ssh host", yes},
		{"bash|-c|$0 host|ssh", yes}, {"bash|-c|\"$@\"|_|ssh|host", yes}, {"bash|-c|wc \"$@\"|_|x", no},

		{"bash|-lc|bash <<EOF\nssh host\nEOF", yes}, {"bash|-lc|sh -s <<'EOF'\nssh *\nEOF", yes}, {"bash|-lc|bash <<-EOF\n\tgit push\n\tEOF", yes},
		{"bash|-lc|bash <<< 'ssh host'", yes},
		{"bash|-lc|. /dev/stdin <<EOF\nssh host\nEOF", yes},
		{"bash|-lc|env bash <<EOF\nssh host\nEOF", yes}, {"bash|-lc|bash <<EOF\n$X\nEOF", unclear}, {"bash|-lc|bash <<EOF\necho x\nEOF", no},
		{"bash|-lc|cat <<EOF >x\nssh host\nEOF", no}, {"bash|-lc|echo ssh host | sh", unclear}, {"bash|-lc|curl x | bash -s -- y", unclear},
		{"bash|-lc|sh <x", unclear}, {"bash|-lc|bash <(echo ssh)", unclear}, {"bash|-lc|source <(echo ssh)", unclear},
		{"bash|-lc|ls && . $X", unclear}, {"bash|-lc|. ./env.sh", no}, {"bash|-lc|echo ssh host | . /dev/stdin", unclear},
		{"bash|-lc|echo ssh host | bash /dev/fd/0", unclear},
		{"bash", unclear},

		{"bash|-lc|echo 'it", unclear}, // it may be what another shell understands
		{"fish|-c|ssh host; and ls", unclear}, {"pwsh|-c|ssh host", unclear}, {"env|csh|-c|ls", unclear},
		{"bash|-lc|" + strings.Repeat("echo; ", decide.MaxScript/6+1), unclear},
		{"sh|-c|" + strings.Repeat("(", decide.MaxScript+1), unclear},
		{"", no},
	} {
		argv := strings.Split(tt.argv, "|")
		if rest, ok := strings.CutPrefix(tt.argv, "bash|-lc|"); ok {
			argv = bash(rest)
		}
		if tt.argv == "" {
			argv = nil
		}
		must.Equal(t, tt.argv, tt.want, decide.Mentions(rules, argv))
		must.Equal(t, tt.argv+" without rules", false, decide.Mentions(nil, argv) || decide.Mentions([][]string{{}}, argv))
	}
	nested := "git push"
	for range 10 {
		nested = shellword.Join([]string{"sh", "-c", nested})
	}
	for _, script := range []string{nested, nested + "; ls"} {
		must.Equal(t, "ten shells in each other", true, decide.Mentions(rules, bash(script)))
	}
}

// TestMentionedWords checks the words that rules are compared with: as the shell passes them, up to the first one
// that it computes.
func TestMentionedWords(t *testing.T) {
	for script, want := range map[string][]string{
		`tool "a\$b" "a\xb" "a\\b" "a\"b" "a\` + "`" + `b" 'c\d' e\f`: {"tool", "a$b", `a\xb`, `a\b`, `a"b`, "a`b", `c\d`, "ef"},
		"to\\\nol a": {"tool", "a"}, "tool \"a\\\nb\" c": {"tool", "ab", "c"}, `t''oo"l" a'b'"c"d`: {"tool", "abcd"},
		"tool a $X b": {"tool", "a", ""}, "tool a $'x' b": {"tool", "a", "x", "b"}, `tool a $'\x' b`: {"tool", "a", ""},
		`tool a $"x" b`: {"tool", "a", ""}, `tool a "x$X" b`: {"tool", "a", ""}, "tool a $(x) b": {"tool", "a", ""},
		"tool a x$((1 + 1))b": {"tool", "a", ""}, "tool a <(x) b": {"tool", "a", ""}, "tool a +(x) b": {"tool", "a", ""},
		"tool a x* b": {"tool", "a", ""}, "tool a x{b,c}": {"tool", "a", ""},
		`tool a x\* 'y*' {b}`: {"tool", "a", "x*", "y*", "{b}"},
		`tool "a\\"`:          {"tool", `a\`},
	} {
		rule := want
		if want[len(want)-1] == "" {
			rule = append(want[:len(want)-1:len(want)-1], "whatever")
			must.Equal(t, fmt.Sprintf("%q may have %q", script, rule), true, decide.Mentions([][]string{rule}, bash(script)))
			rule = want[:len(want)-1]
		}
		other := append(slices.Clone(rule[:len(rule)-1]), rule[len(rule)-1]+"x")
		must.Equal(t, fmt.Sprintf("%q has %q", script, rule), true, decide.Mentions([][]string{rule}, bash(script)))
		must.Equal(t, fmt.Sprintf("%q has %q", script, other), false, decide.Mentions([][]string{other}, bash(script)))
	}
}

func TestParse(t *testing.T) {
	word := func(text string) decide.Word { return decide.Word{Text: text} }
	for _, tt := range []struct {
		text string
		want [][]decide.Word // nil when the script is more than plain words
	}{
		{"ls -l", [][]decide.Word{{word("ls"), word("-l")}}},
		{"a && b || c | d; e", [][]decide.Word{{word("a")}, {word("b")}, {word("c")}, {word("d")}, {word("e")}}},
		{`echo 'a b' "c d"`, [][]decide.Word{{word("echo"), word("a b"), word("c d")}}},
		{`echo a\ b "c\"d"`, [][]decide.Word{{word("echo"), {Text: "a b"}, {Text: `c"d`}}}},
		{"ls *.go ~", [][]decide.Word{{word("ls"), {Text: "*.go", Open: true}, {Text: "~", Open: true}}}},
		{"", nil}, {"a # c", nil}, {"a &", nil}, {"a > b", nil}, {"A=1 a", nil}, {"echo $A", nil}, {"echo $'a'", nil}, {"echo a'b'", nil},
		{"'a' b", nil}, {"(a)", nil}, {"a 'b", nil},
	} {
		got, ok := decide.ParseScript(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) {
			t.Errorf("%q: %t (-want +got):\n%s", tt.text, ok, diff)
		}
	}
}

// TestLimit has scripts that need much stack for each byte. The parser must fail before it
// has read them. Long scripts without nesting are parsed.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		repeat string
		limit  bool
	}{
		{"(", true}, {"((", true}, {"((-", true}, {"{ ", true}, {"$(", true}, {"\"$(", true}, {"<(", true}, {"$[", true}, {"${a:-", true},
		{"a[", true}, {"if ", true}, {"time ", true}, {"f() ", true}, {"(a); ", false}, {"$(a) ", false}, {"{ a; }\n", false},
		{"if a; then b; fi; ", false},
	} {
		text := strings.Repeat(tt.repeat, decide.MaxScript/len(tt.repeat))
		if _, err := decide.ParseFile(text); errors.Is(err, decide.ErrScript) != tt.limit || err != nil && !tt.limit {
			t.Errorf("%q: %v, want the limit: %t", tt.repeat, err, tt.limit)
		}
		var last error
		for _, err := range decide.Statements(text) {
			last = err
		}
		must.Equal(t, tt.repeat+": the statements end with the limit", tt.limit, errors.Is(last, decide.ErrScript))
	}
	nested := strings.Repeat("( ", 100) + "a" + strings.Repeat(" )", 100)
	must.Get(decide.ParseFile(nested))(t)
	long := "a <<'EOF'\n" + strings.Repeat("((((\n", decide.MaxScript/5-3) + "EOF\n"
	must.Get(decide.ParseFile(long))(t)
}

// TestEveryShell checks that rules that deny see into the scripts of every shell, however it is
// named, and that rules that allow see only into those that they know.
func TestEveryShell(t *testing.T) {
	known := []string{"bash", "sh", "zsh", "dash", "ksh"}
	for _, shell := range append(slices.Clone(known), "ash", "csh", "fish", "mksh", "pdksh", "rbash", "tcsh", "yash") {
		for _, name := range []string{shell, "/bin/" + shell, `C:\tools\` + shell + ".EXE", "-" + shell, shell + ".exe", shell + ".Com. "} {
			must.Equal(t, name+" mentions rm", true, decide.Mentions([][]string{{"rm", "x"}}, []string{name, "-c", "ls; rm x"}))
			commands, plain := decide.Commands([]string{name, "-c", "ls"})
			if want := (name == shell || name == "/bin/"+shell) && slices.Contains(known, shell); plain != want || want && !slices.EqualFunc(commands, [][]string{{"ls"}}, slices.Equal) {
				t.Errorf("%s: %q, plain %v", name, commands, plain)
			}
		}
	}
	for _, argv := range [][]string{nil, {"bash", "-c", "ls $x"}, {"bash", "-c", "ls *"}, {"bash", "-x", "ls"}, {"bash", "-c", "ls", "x"}} {
		if commands, plain := decide.Commands(argv); plain {
			t.Errorf("%q: %q", argv, commands)
		}
	}
}
