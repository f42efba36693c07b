package decide_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// row is one line of testdata/commands.ndjson: what Codex 0.42.0 did with a command under
// the policy untrusted. Package summary tests how it described the command.
type row struct {
	Command []string `json:"command"`
	Safe    bool     `json:"safe"`
}

// judgment is one line of testdata/judged.ndjson: what must happen to a command, and why. Package approval tests Rules.
type judgment struct {
	Command   []string `json:"command"`
	Untrusted string   `json:"untrusted"` // under the policy untrusted
	Strict    bool     `json:"strict"`    // known to be safe by the strict rules
	Rules     string   `json:"rules"`
	Why       string   `json:"why"`
}

func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	b, err := os.ReadFile(file)
	must.OK(t, err)
	var rows []T
	for line := range bytes.Lines(b) {
		var r T
		must.OK(t, json.Unmarshal(line, &r))
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
		want := map[string]decide.Action{"read-only": decide.RunReadOnly, "ask": decide.Ask}[r.Untrusted]
		for _, mode := range protocol.SandboxModes() {
			in := decide.Input{Policy: "untrusted", Sandbox: mode, SandboxAvailable: true, Command: r.Command}
			if got := decide.Exec(in).Action; got != want {
				t.Errorf("%q in %s: action %d, want %s: %s", r.Command, mode, got, r.Untrusted, r.Why)
			}
		}
		if got := decide.KnownSafe(r.Command, true); got != r.Strict {
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
	for _, r := range readLines[row](t, "testdata/commands.ndjson") {
		want := r.Safe && !slices.ContainsFunc(away, func(c []string) bool { return slices.Equal(c, r.Command) })
		if got := decide.KnownSafe(r.Command, false); got != want {
			t.Errorf("%q: known to be safe: %t, want %t", r.Command, got, want)
		}
		if decide.KnownSafe(r.Command, true) && !want {
			t.Errorf("%q: safe by the strict rules alone", r.Command)
		}
	}
}

// TestKnownSafeEdges has commands that are nearly known to be safe, each beside one that is.
func TestKnownSafeEdges(t *testing.T) {
	for script, want := range map[string]bool{
		"sed -n 1,2p x": true, "sed -n 1,2 x": false, "sed -n p x": false, "sed -n 1,p x": false,
		"git branch --format=%(refname)": true, "git branch --format=%(refname": false, "git branch --format=x%(if)%(HEAD)": false, "git branch --format=x%(HEAD)": true,
		"git branch --sort=-version:refname": true, "git branch --sort=v:refname": true, "git branch --sort=signature": false,
		"git branch --contains=x y": true, "git branch --no-contains x": true, "git branch --no-merged x": true, "git branch --points-at=x y": true, "git branch x": false,
		"git log --format=short": true, "git log --format=medium": true, "git log --format=full": true, "git log --format=fuller": true,
		"git log --format=reference": true, "git log --format=email": true, "git log --format=raw": true,
		"git log --format=": true, "git log --format=mine": false, "git log --format=format:x": true, "git log --format=tformat:x": true,
		"git log --format=%h": true, "git log --format=%GK": false, "git log --format=format:%": false,
	} {
		if got := decide.KnownSafe(strings.Fields(script), false); got != want {
			t.Errorf("%s: %t", script, got)
		}
	}
	for script, want := range map[string]bool{
		"ls": true, "ls\n# x": false, "# x": false, "ls a\\\nb": true, "echo " + strings.Repeat("a ", 1000): true, "echo " + strings.Repeat("a ", decide.MaxScript): false,
	} {
		if got := decide.KnownSafe(bash(script), false); got != want {
			t.Errorf("%.20q: %t", script, got)
		}
	}
	if decide.KnownSafe(nil, false) || decide.KnownSafe([]string{}, false) {
		t.Error("no command is known to be safe")
	}
}
