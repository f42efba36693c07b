package policy_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// row is one line of testdata/commands.ndjson: what Codex 0.42.0 did with a command under
// the policy untrusted. Package summary tests how it described the command.
type row struct {
	Command []string `json:"command"`
	Safe    bool     `json:"safe"`
}

func readRows(t testing.TB) []row { return readLines[row](t, "testdata/commands.ndjson") }

// judgment is one line of testdata/judged.ndjson: what must happen to a command, and why.
// Package approval tests Rules.
type judgment struct {
	Command   []string `json:"command"`
	Untrusted string   `json:"untrusted"` // under the policy untrusted
	Strict    bool     `json:"strict"`    // known to be safe by the strict rules
	Rules     string   `json:"rules"`
	Why       string   `json:"why"`
}

func readLines[T any](t testing.TB, file string) []T {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	for line := range bytes.Lines(b) {
		var r T
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func bash(script string) []string { return []string{"bash", "-lc", script} }

// TestJudged decides about every command of the corpus.
func TestJudged(t *testing.T) {
	rows := readLines[judgment](t, "testdata/judged.ndjson")
	if len(rows) < 200 {
		t.Errorf("the corpus has %d commands", len(rows))
	}
	for _, r := range rows {
		want := map[string]policy.Action{"read-only": policy.RunReadOnly, "ask": policy.Ask}[r.Untrusted]
		for _, mode := range protocol.SandboxModes() {
			in := policy.Input{Policy: "untrusted", Sandbox: mode, SandboxAvailable: true, Command: r.Command}
			if got := policy.Decide(in).Action; got != want {
				t.Errorf("%q in %s: %s, want %s: %s", r.Command, mode, got, r.Untrusted, r.Why)
			}
		}
		if got := policy.KnownSafeStrict(r.Command); got != r.Strict {
			t.Errorf("%q: strictly safe: %t, want %t: %s", r.Command, got, r.Strict, r.Why)
		}
	}
}

// TestKnownSafeAsRecorded compares the safe commands with those of September 2025. None
// was added; those that were removed are listed here.
func TestKnownSafeAsRecorded(t *testing.T) {
	away := [][]string{
		// Patterns could match a file whose name is an option, such as -delete.
		bash("find . -name *.txt"), bash("rg x *"), bash("git log -- *.txt"), bash("ls\r"),
		// These write, or run files of the workspace.
		{"git", "diff", "--output=F"}, {"git", "branch", "-D", "x"}, bash("git branch -D x"),
		{"cargo", "check"}, {"cargo", "check", "--all"}, bash("cargo check && cargo check"),
		// No version of rg has this option.
		{"rg", "--prefix", "x"},
	}
	for _, r := range readRows(t) {
		want := r.Safe && !slices.ContainsFunc(away, func(c []string) bool { return slices.Equal(c, r.Command) })
		if got := policy.KnownSafe(r.Command); got != want {
			t.Errorf("%q: known to be safe: %t, want %t", r.Command, got, want)
		}
		if policy.KnownSafeStrict(r.Command) && !want {
			t.Errorf("%q: safe by the strict rules alone", r.Command)
		}
	}
}

// TestMentioned looks for a denied command in scripts that hide it.
func TestMentioned(t *testing.T) {
	for _, argv := range [][]string{
		{"git", "push"},
		bash("git push"),
		{"./bash", "--norc", "-c", "git push"},
		{"zsh", "-xc", "if x; then (git push) & fi"},
		{"sh", "git push"},
		bash(`sh -c 'dash -c "git push"'`),
		bash("echo $(git push)"),
		bash("A=1 'git' pu\\sh $X"),
		bash("git push\n("),
	} {
		got, all := policy.Mentioned(argv)
		if !slices.ContainsFunc(got, isPush) || !all {
			t.Errorf("%q: mentions %q, all %t", argv, got, all)
		}
	}
	for _, argv := range [][]string{nil, {"echo", "git push"}, bash("echo git push"), bash("git $X push")} {
		if got, all := policy.Mentioned(argv); slices.ContainsFunc(got, isPush) || !all {
			t.Errorf("%q: mentions %q, all %t", argv, got, all)
		}
	}
	nested := "git push"
	for range 10 {
		nested = shellword.Join([]string{"sh", "-c", nested})
	}
	deep := strings.Repeat("(", policy.MaxScript+1)
	for name, argv := range map[string][]string{
		"ten shells in each other": bash(nested), "a known command after them": bash(nested + "; ls"),
		"a word that is too deep": {"sh", "-c", deep}, "a known word after it": {"sh", "-c", deep, "ls)", "ls"},
	} {
		if _, all := policy.Mentioned(argv); all {
			t.Errorf("%s: all commands are known", name)
		}
	}
}

// TestKnownSafeEdges has commands that are nearly known to be safe, each beside one that is.
func TestKnownSafeEdges(t *testing.T) {
	for script, want := range map[string]bool{
		"sed -n 1,2p x": true, "sed -n 1,2 x": false, "sed -n p x": false, "sed -n 1,p x": false,
		"git branch --format=%(refname)": true, "git branch --format=%(refname": false, "git branch --format=x%(if)%(HEAD)": true,
		"git branch --sort=-version:refname": true, "git branch --sort=v:refname": true, "git branch --sort=signature": false,
		"git branch --contains=x y": true, "git branch --no-contains x": true, "git branch --no-merged x": true, "git branch --points-at=x y": true, "git branch x": false,
		"git log --format=short": true, "git log --format=medium": true, "git log --format=full": true, "git log --format=fuller": true,
		"git log --format=reference": true, "git log --format=email": true, "git log --format=mboxrd": true, "git log --format=raw": true,
		"git log --format=": true, "git log --format=mine": false, "git log --format=format:x": true, "git log --format=tformat:x": true,
		"git log --format=%h": true, "git log --format=%GK": false, "git log --format=format:%": false,
	} {
		if got := policy.KnownSafe(strings.Fields(script)); got != want {
			t.Errorf("%s: %t", script, got)
		}
	}
	for script, want := range map[string]bool{
		"ls": true, "ls\n# x": false, "# x": false, "ls a\\\nb": true, "echo " + strings.Repeat("a ", 1000): true, "echo " + strings.Repeat("a ", policy.MaxScript): false,
	} {
		if got := policy.KnownSafe(bash(script)); got != want {
			t.Errorf("%.20q: %t", script, got)
		}
	}
	if _, all := policy.Mentioned(bash("echo " + strings.Repeat("a ", policy.MaxScript))); all {
		t.Error("a script that is too long: all commands are known")
	}
	if policy.KnownSafe(nil) || policy.KnownSafe([]string{}) {
		t.Error("no command is known to be safe")
	}
}

func isPush(c []string) bool { return len(c) >= 2 && c[0] == "git" && c[1] == "push" }

// TestMentionedWords checks the words that rules that deny are compared with: as the shell passes
// them, up to the first one that it computes.
func TestMentionedWords(t *testing.T) {
	for script, want := range map[string][]string{
		`tool "a\$b" "a\xb" "a\\b" "a\"b" "a\` + "`" + `b" 'c\d' e\f`: {"tool", "a$b", `a\xb`, `a\b`, `a"b`, "a`b", `c\d`, "ef"},
		"to\\\nol a":          {"tool", "a"},
		"tool \"a\\\nb\" c":   {"tool", "ab", "c"},
		`t''oo"l" a'b'"c"d`:   {"tool", "abcd"},
		"tool a $X b":         {"tool", "a"},
		"tool a $'x' b":       {"tool", "a"},
		`tool a $"x" b`:       {"tool", "a"},
		`tool a "x$X" b`:      {"tool", "a"},
		"tool a $(x) b":       {"tool", "a"},
		"tool a x$((1 + 1))b": {"tool", "a"},
		"tool a <(x) b":       {"tool", "a"},
		"tool a +(x) b":       {"tool", "a"},
		`tool "a\\"`:          {"tool", `a\`},
	} {
		got, _ := policy.Mentioned(bash(script))
		if len(got) < 3 || !slices.Equal(got[2], want) {
			t.Errorf("%q mentions %q, want %q", script, got, want)
		}
	}
}

// TestDeepScripts has scripts that would use up the parser's stack.
func TestDeepScripts(t *testing.T) {
	for _, opening := range []string{"(", "((", "$(", "a["} {
		for _, size := range []int{1 << 10, policy.MaxScript, 8 << 20} {
			argv := bash(strings.Repeat(opening, size/len(opening)))
			if _, plain := policy.Commands(argv); plain {
				t.Errorf("%s: it has plain commands", opening)
			}
			if _, _, ok := policy.Literal(argv); ok {
				t.Errorf("%s: its words are literal", opening)
			}
			// A short text is parsed up to its mistake.
			if got, all := policy.Mentioned(argv); all && size > 1<<10 {
				t.Errorf("%s: mentions %d commands, all %t", opening, len(got), all)
			}
			if policy.KnownSafe(argv) {
				t.Errorf("%s: it is known to be safe", opening)
			}
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want []string // nil when a word has another meaning
	}{
		{[]string{"go", "test", "./..."}, []string{"go", "test", "./..."}},
		{[]string{"git", "commit", "-m", "a: b, c"}, []string{"git", "commit", "-m", "a: b, c"}},
		{[]string{"sh", "x"}, []string{"sh", "x"}},
		{[]string{"bash", "-xc", "make all"}, []string{"bash", "-xc", "make all"}},
		{bash("go test ./..."), []string{"bash", "go", "test", "./..."}},
		{bash(`git commit -m 'a b' "c d" e\ f`), []string{"bash", "git", "commit", "-m", "a b", "c d", "e f"}},
		{[]string{"/bin/zsh", "-c", "make 'a'"}, []string{"/bin/zsh", "make", "a"}},
		{[]string{"/usr/bin/zsh", "-c", "make 'a'"}, []string{"/usr/bin/zsh", "make", "a"}},
		{[]string{"/usr/local/bin/zsh", "-lc", "make 'a'"}, []string{"/usr/local/bin/zsh", "make", "a"}},
		{[]string{"AZaz09_./-:,=@%+ "}, []string{"AZaz09_./-:,=@%+ "}},

		{[]string{"./zsh", "-c", "make 'a'"}, nil},
		{[]string{"fish", "-c", "make 'a'"}, nil},
		{bash("a && b"), nil},
		{bash("a; b"), nil},
		{bash("a\nb"), nil},
		{bash("a | b"), nil},
		{bash("a &"), nil},
		{bash("! a"), nil},
		{bash("(a)"), nil},
		{bash("{ a; }"), nil},
		{bash("a > b"), []string{"bash", "a", "b"}},
		{bash("a c <b >>d 2>&1"), []string{"bash", "a", "c", "b", "d"}},
		{bash("a &> b"), []string{"bash", "a", "b"}},
		{bash("a >& b"), nil},
		{bash("a > b*"), nil},
		{bash("a > $b"), nil},
		{bash("> b"), nil},
		{bash("a > b; c"), nil},
		{bash("(a) > b"), nil},
		{bash("a > 'b$c'"), nil},
		{bash("a > b | c"), nil},
		{bash("a <(b)"), nil},
		{bash("a > >(b)"), nil},
		{bash("a <<<b"), nil},
		{bash("A=1 b"), nil},
		{bash("A=1"), nil},
		{bash("f() { a; }"), nil},
		{bash("coproc a"), nil},
		{bash("time a"), nil},
		{bash("let a"), nil},
		{bash("((a))"), nil},
		{bash("[[ a ]]"), nil},
		{bash("a $b"), nil},
		{bash("a ${b}"), nil},
		{bash(`a "$b"`), nil},
		{bash("a $(b)"), nil},
		{bash("a `b`"), nil},
		{bash("a <(b)"), nil},
		{bash("a $((1))"), nil},
		{bash("a $'b'"), nil},
		{bash(`a $"b"`), nil},
		{bash("a '$b'"), nil}, // a program may pass it to a shell
		{bash("a *"), nil},
		{bash("a '*'"), nil},
		{bash("a [b]"), nil},
		{bash("a +(b)"), nil},
		{bash("a {b,c}"), nil},
		{bash("a ~/b"), nil},
		{bash("a b\u00a0c"), nil},
		{bash("a 'b\tc'"), nil},
		{bash("a # b"), nil},
		{bash("a b\n# c"), nil},
		{bash("a b\r\n"), nil},
		{bash("a b\\\nc"), []string{"bash", "a", "bc"}},
		{bash("a ||"), nil},
		{[]string{"a", "b|c"}, nil},
		{[]string{"a", "b\nc"}, nil},
		{[]string{"a", "!b"}, nil},
		{[]string{"a", "b;"}, nil},
		{[]string{"a", "`b`"}, nil},
		{[]string{"a", "\\b"}, nil},
		{[]string{"a", "'b'"}, nil},
		{nil, nil},
		{[]string{""}, nil},
	} {
		got, programs, ok := policy.Literal(tt.argv)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) || programs > len(got) {
			t.Errorf("%q: %t, %d programs (-want +got):\n%s", tt.argv, ok, programs, diff)
		}
	}
}

func FuzzScripts(f *testing.F) {
	for _, r := range readRows(f) {
		if len(r.Command) == 3 {
			f.Add(r.Command[1], r.Command[2])
		}
	}
	f.Fuzz(func(t *testing.T, flag, text string) {
		for _, argv := range [][]string{{"bash", flag, text}, {flag, text}, {text}} {
			policy.Mentioned(argv)
			if words, _, ok := policy.Literal(argv); ok && strings.ContainsAny(strings.Join(words, ""), "$`*?[]{}()~!&|;<>'\"\\#^\n") {
				t.Errorf("%q has the literal words %q", argv, words)
			}
			if policy.KnownSafeStrict(argv) && !policy.KnownSafe(argv) {
				t.Errorf("%q is safe by the strict rules alone", argv)
			}
		}
	})
}
