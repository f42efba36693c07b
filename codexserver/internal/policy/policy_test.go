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
	if _, all := policy.Mentioned(bash(nested)); all {
		t.Error("ten shells in each other: all of their commands are known")
	}
}

func isPush(c []string) bool { return len(c) >= 2 && c[0] == "git" && c[1] == "push" }

// TestDeepScripts has scripts that would use up the parser's stack.
func TestDeepScripts(t *testing.T) {
	for _, opening := range []string{"(", "((", "$(", "a["} {
		for _, size := range []int{policy.MaxScript, 8 << 20} {
			argv := bash(strings.Repeat(opening, size/len(opening)))
			if _, plain := policy.Commands(argv); plain {
				t.Errorf("%s: it has plain commands", opening)
			}
			if _, _, ok := policy.Literal(argv); ok {
				t.Errorf("%s: its words are literal", opening)
			}
			if got, all := policy.Mentioned(argv); all {
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
