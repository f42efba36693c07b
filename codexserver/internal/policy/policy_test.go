package policy_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// row is one line of testdata/commands.ndjson: what Codex 0.42.0 did with a
// command under the policy untrusted.
type row struct {
	Command []string                 `json:"command"`
	Safe    bool                     `json:"safe"`
	Parsed  []protocol.ParsedCommand `json:"parsed"`
}

func readRows(t testing.TB) []row {
	t.Helper()
	b, err := os.ReadFile("testdata/commands.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for line := range bytes.Lines(b) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

func bash(script string) []string { return []string{"bash", "-lc", script} }

func TestKnownSafeAsRecorded(t *testing.T) {
	// Patterns could match a file whose name is an option, such as -delete.
	careful := [][]string{
		bash("find . -name *.txt"), bash("rg x *"), bash("git log -- *.txt"), bash("ls\r"),
	}
	for _, r := range readRows(t) {
		want := r.Safe && !slices.ContainsFunc(careful, func(c []string) bool { return slices.Equal(c, r.Command) })
		if got := policy.KnownSafe(r.Command); got != want {
			t.Errorf("%q: known to be safe: %t, want %t", r.Command, got, want)
		}
		if policy.KnownSafeStrict(r.Command) && !want {
			t.Errorf("%q: safe by the strict rules alone", r.Command)
		}
	}
}

func TestKnownSafeStrict(t *testing.T) {
	tests := []struct {
		command        []string
		compat, strict bool
	}{
		{[]string{"ls", "-la"}, true, true},
		{[]string{"cat", "-"}, true, true},
		{bash("cat a | grep x && pwd"), true, true},
		{[]string{"rg", "-n", "x"}, true, true},
		{[]string{"rg", "--", "-z"}, false, false},
		{[]string{"rg", "-nz", "x"}, true, false},
		{[]string{"rg", "--pre-glob", "*", "x"}, true, false},
		{[]string{"rg", "--search", "x"}, true, false},
		{[]string{"find", ".", "-name", "*.go"}, true, true},
		{[]string{"sed", "-n", "1,5p", "a"}, true, true},
		{[]string{"sed", "-n", "1p", "-fscript"}, false, false},
		{[]string{"git", "status"}, true, false},
		{[]string{"git", "branch", "-D", "main"}, true, false},
		{[]string{"git", "diff", "--output=F"}, true, false},
		{[]string{"git", "log", "--output", "F"}, true, false},
		{[]string{"git", "diff", "--ext-diff"}, true, false},
		{[]string{"git", "-c", "core.fsmonitor=x", "status"}, false, false},
		{[]string{"cargo", "check"}, true, false},
		{bash("cat *"), true, false},
		{bash(`find . -del\ete`), false, false},
		{bash(`find . "-delete"`), false, false},
		{bash("ls\nrm x"), false, false},
		{bash("ls $(rm x)"), false, false},
		{bash("cat <(rm x)"), false, false},
		{bash("ls & rm x"), false, false},
		{bash("ls |& rm x"), false, false},
		{bash("PATH=. ls"), false, false},
		{bash("ls > x"), false, false},
		{bash("ls\x00rm x"), false, false},
		{nil, false, false},
		{[]string{""}, false, false},
	}
	for _, tt := range tests {
		if got := policy.KnownSafe(tt.command); got != tt.compat {
			t.Errorf("%q: known to be safe: %t, want %t", tt.command, got, tt.compat)
		}
		if got := policy.KnownSafeStrict(tt.command); got != tt.strict {
			t.Errorf("%q: strictly safe: %t, want %t", tt.command, got, tt.strict)
		}
	}
}

func TestParseAsRecorded(t *testing.T) {
	// Where the recorded text is not what the shell would run.
	differs := [][]string{bash("echo a\\\nb"), bash("let a=1"), bash("ls\r")}
	for _, r := range readRows(t) {
		if slices.ContainsFunc(differs, func(c []string) bool { return slices.Equal(c, r.Command) }) {
			continue
		}
		if diff := cmp.Diff(r.Parsed, policy.Parse(r.Command), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-recorded +got):\n%s", r.Command, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range readRows(f) {
		if len(r.Command) == 3 {
			f.Add(r.Command[1], r.Command[2])
		}
	}
	f.Fuzz(func(t *testing.T, flag, text string) {
		for _, argv := range [][]string{{"bash", flag, text}, {flag, text}, {text}} {
			policy.Parse(argv)
			if policy.KnownSafeStrict(argv) && !policy.KnownSafe(argv) {
				t.Errorf("%q is safe by the strict rules alone", argv)
			}
		}
	})
}
