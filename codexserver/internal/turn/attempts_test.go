package turn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// joined returns attempts that have ended, each with a result.
func joined(results ...protocol.TurnResult) *Turn {
	all := make([]*Turn, len(results))
	for i := range results {
		all[i] = New(changes.Options{})
		all[i].Ended(&results[i])
	}
	Join(all...)
	for _, other := range all[1:] {
		other.End()
	}
	return all[0]
}

// TestBestAttempt has the attempts in each order: the first of a row is the best.
func TestBestAttempt(t *testing.T) {
	change := func(path, kind string, n int) protocol.Change {
		return protocol.Change{Path: path, Kind: kind, Added: &n, Removed: new(0)}
	}
	passed := func(command string) protocol.Check { return protocol.Check{Command: command, Passed: new(true)} }
	refused := func(n int) []protocol.Refusal { return make([]protocol.Refusal, n) }
	const done, not = protocol.StatusCompleted, protocol.StatusIncomplete
	for name, rows := range map[string][]protocol.TurnResult{
		"the status counts first": {
			{Status: done, Refused: refused(9)}, {Status: not}, {Status: protocol.StatusAborted}, {Status: protocol.StatusFailed},
		},
		"then the files of the check": {
			{Status: done, Check: passed("make"), Refused: refused(2), Changes: []protocol.Change{change("a.go", "update", 9)}},
			{Status: done, Check: passed("make"), Refused: refused(1), Changes: []protocol.Change{change("Makefile", "add", 1)}},
			{Status: not, Check: protocol.Check{Command: "make"}},
		},
		"then refusals, also those that are left out": {
			{Status: done, Refused: refused(1)}, {Status: done, Refused: refused(2)},
			{Status: done, Refused: refused(1), Truncated: protocol.Truncated{Refused: 2}},
		},
		"then lines": {
			{Status: done, Changes: []protocol.Change{{Path: "image", Kind: "add"}}},
			{Status: done, Changes: []protocol.Change{change("a", "add", 1), change("b", "add", 1)}},
			{Status: done, Changes: []protocol.Change{change("a", "add", 3)}},
		},
	} {
		for i := range rows {
			rows[i].ThreadID = fmt.Sprint("thread-", i)
		}
		for shift := range rows {
			shifted := slices.Concat(rows[shift:], rows[:shift])
			first := joined(shifted...)
			first.Choose()
			first.End()
			r := first.Result()
			got := []string{r.ThreadID}
			for _, a := range r.Attempts {
				got = append(got, a.ThreadID)
			}
			var want []string
			for _, row := range rows {
				want = append(want, row.ThreadID)
			}
			must.Equal(t, name, want, got)
			number := slices.IndexFunc(shifted, func(row protocol.TurnResult) bool { return row.ThreadID == rows[0].ThreadID }) + 1
			if said := fmt.Sprintf("This is the result of attempt %d of %d.", number, len(rows)); !strings.Contains(r.Content, said) {
				t.Errorf("%s: %q is not in %q", name, said, r.Content)
			}
		}
	}
}

// TestTouched names the changed files that may decide about a check.
func TestTouched(t *testing.T) {
	for _, tt := range []struct {
		command, kind, path, from string
		want                      bool
	}{
		{"make test", "update", "main.go", "", false},
		{"make test", "add", "Makefile", "", true},
		{"make test", "update", "sub/GNUmakefile", "", true},
		{"npm test", "update", "web/package.json", "", true},
		{"npm test", "rename", "web/old.json", "web/package.json", true},
		{"npm test", "update", "package.json.md", "", false},
		{"go test ./...", "update", "a/b_test.go", "", true},
		{"go test ./...", "delete", "a/b_test.go", "", true},
		{"go test ./...", "add", "a/b_test.go", "", false},
		{"go test ./...", "rename", "b.txt", "a/b_test.go", true},
		{"go test ./...", "update", "testdata/golden", "", true},
		{"go test ./...", "update", "latest/x.go", "", false},
		{"pytest", "add", "conftest.py", "", true},
		{"pytest", "update", "tests/x.py", "", true},
		{"pytest", "update", "test_x.py", "", true},
		{"npx vitest", "update", "src/a.spec.ts", "", true},
		{"sh ./check.sh", "update", "check.sh", "", true},
		{"sh 'check.sh'", "update", "sub/check.sh", "", true},
		{"sh check.sh", "add", "check.sh", "", false},
		{"true", "add", ".github/workflows/ci.yml", "", true},
	} {
		r := &protocol.TurnResult{Check: protocol.Check{Command: tt.command}, Changes: []protocol.Change{{Path: tt.path, From: tt.from, Kind: tt.kind}}}
		if got := len(touched(r)) > 0; got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

// TestAttemptInShort shows what a result says of each other attempt.
func TestAttemptInShort(t *testing.T) {
	a := attemptOf(&protocol.TurnResult{
		ThreadID: "019aa1f8-0000-7000-8000-000000000000", Status: protocol.StatusIncomplete, Check: protocol.Check{Command: "make", Passed: new(true)},
		Worktree: &protocol.Worktree{Branch: "codex/0123abcd", Commit: strings.Repeat("0a", 20)},
		Changes:  []protocol.Change{{Path: "Makefile", Kind: "add", Added: new(1234), Removed: new(56)}},
		Usage:    &protocol.TurnUsage{Turn: protocol.Tokens{Input: 123_456, Output: 7890}},
	})
	must.Equal(t, "words", "incomplete, the check passed, of which it has changed files, 1 file and 1,290 lines changed on codex/0123abcd", inShort(a))
	raw, err := json.Marshal(a)
	must.OK(t, err)
	want := `{"threadId":"019aa1f8-0000-7000-8000-000000000000","status":"incomplete","branch":"codex/0123abcd","commit":"0a0a0a0","check":true,"touched":true,"files":1,"lines":1290,"tokens":131346}`
	must.Equal(t, "JSON", want, string(raw))
}
