//go:build unix

package board

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// TestRulesAsJudged asks about every command of the corpus, as an engine does that checks
// where programs lie.
func TestRulesAsJudged(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{
			{Command: []string{"go", "test"}}, {Command: []string{"git", "log"}}, {Command: []string{"make"}, Outside: true},
			{Command: []string{"run.sh"}}, {Command: []string{"./run.sh"}}, {Command: []string{"node_modules/.bin/tsc"}},
			{Command: []string{"tsc"}}, {Command: []string{"pytest"}}, {Command: []string{"linked"}}, {Command: []string{"missing"}},
		},
		Deny: [][]string{{"git", "push"}, {"rm"}},
	}
	p := workshop(t)
	corpus, err := os.ReadFile("../policy/testdata/judged.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	words := map[elicit.Decision]string{"": "ask", elicit.Approved: "allow", elicit.Denied: "deny"}
	for line := range bytes.Lines(corpus) {
		var row struct {
			Command []string
			Rules   string
			Why     string
		}
		if err := json.Unmarshal(line, &row, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		q := protocol.ExecApprovalRequest{Command: row.Command, Cwd: p.Dir, Confinable: true}
		q.Program, q.Replaceable = p.Replaceable(row.Command)
		out, _ := decideExec(&rules, &q)
		if got := words[out.Decision]; got != row.Rules {
			t.Errorf("%q: %s, want %s: %s (program %q, replaceable %t)", row.Command, got, row.Rules, row.Why, q.Program, q.Replaceable)
		}
	}
}

// workshop is a workspace with its own programs in PATH, before those of a system.
func workshop(t *testing.T) policy.Place {
	t.Helper()
	base := t.TempDir()
	work, links, system := filepath.Join(base, "work"), filepath.Join(base, "links"), filepath.Join(base, "system")
	for _, file := range []string{
		"work/run.sh", "work/bin/run.sh", "work/bash", "work/node_modules/.bin/tsc", "work/venv/bin/pytest", "work/lib/linked",
		"system/bash", "system/sh", "system/zsh", "system/dash", "system/ksh", "system/git", "system/go", "system/make", "system/cat", "system/head",
	} {
		path := filepath.Join(base, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"links": "work/venv/bin", "system/linked": "../work/lib/linked"} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(work, "node_modules/.bin") + ":" + links + ":" + filepath.Join(work, "bin") + ":" + system
	return policy.Place{Dir: work, Env: []string{"PATH=" + path}, Roots: []string{work}}
}
