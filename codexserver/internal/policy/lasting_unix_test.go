//go:build unix

package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestNothingLastsOfWhatIsUnknown checks that no rule is proposed, and none covers, where the
// engine says nothing about the files of a command, or what they contain.
func TestNothingLastsOfWhatIsUnknown(t *testing.T) {
	w := newWorkplace(t)
	known := w.ask([]string{"wc", "x.py"}, true)
	p, ok := policy.Propose(known)
	if !ok {
		t.Fatal("no rule is proposed")
	}
	for name, change := range map[string]func(q *protocol.ExecApprovalRequest){
		"not placed":    func(q *protocol.ExecApprovalRequest) { q.Placed = false },
		"no content":    func(q *protocol.ExecApprovalRequest) { q.Content = "" },
		"replaceable":   func(q *protocol.ExecApprovalRequest) { q.Replaceable = true },
		"no folder":     func(q *protocol.ExecApprovalRequest) { q.Cwd = filepath.Join(w.dir, "missing") },
		"no command":    func(q *protocol.ExecApprovalRequest) { q.Command = nil },
		"judged others": func(q *protocol.ExecApprovalRequest) { q.Judged = []string{"wc", "y.py"} },
	} {
		q := *known
		change(&q)
		if _, ok := policy.Covers([]policy.Rule{p.Rule}, &q); ok {
			t.Errorf("%s: the rule covers it", name)
		}
		if other, ok := policy.Propose(&q); ok && other.Rule.Equal(p.Rule) {
			t.Errorf("%s: %+v", name, other.Rule)
		}
	}
	if _, ok := policy.Covers(nil, known); ok {
		t.Error("no rule covers it")
	}
	for name, change := range map[string]func(r *policy.Rule){
		"words":   func(r *policy.Rule) { r.Exact = []string{"wc", "y.py"} },
		"prefix":  func(r *policy.Rule) { r.Prefix = []string{"wc"} },
		"content": func(r *policy.Rule) { r.Content = "x" },
		"folder":  func(r *policy.Rule) { r.Folder = "/x" },
		"patches": func(r *policy.Rule) { r.Patches = "/x" },
		"outside": func(r *policy.Rule) { r.Outside = true },
	} {
		r := p.Rule
		change(&r)
		if r.Equal(p.Rule) || p.Rule.Equal(r) {
			t.Errorf("a rule with other %s is the same", name)
		}
		if r.Patches == "" && !r.Outside {
			if _, ok := policy.Covers([]policy.Rule{r}, known); ok {
				t.Errorf("a rule with other %s covers it", name)
			}
		}
	}
}

// TestWhatChangesLaterWords checks that a script is replaceable if an early command may change
// what its later words mean, or if the shell reads a file that commands can write.
func TestWhatChangesLaterWords(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, system := filepath.Join(base, "work"), filepath.Join(base, "system")
	names := []string{"alias", "command", "getopts", "hash", "read", "type", "unalias"}
	for _, dir := range []string{work, system} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append([]string{"tool", "sh", "bash"}, names...) {
		if err := os.WriteFile(filepath.Join(system, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	profile := filepath.Join(work, "profile")
	if err := os.WriteFile(profile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	place := policy.Place{Dir: work, Env: []string{"PATH=" + system, "HOME=" + base}, Roots: []string{work}}
	for _, name := range append([]string{"tool"}, names...) {
		if _, yes := place.Replaceable([]string{"sh", "-c", name + " x; tool"}); yes != (name != "tool") {
			t.Errorf("%s: %v", name, yes)
		}
	}
	for variable, want := range map[string]bool{"BASH_ENV": true, "ENV": true, "OTHER": false} {
		p := place
		p.Env = append(p.Env[:2:2], variable+"="+profile)
		if _, yes := p.Replaceable([]string{"bash", "-c", "tool"}); yes != want {
			t.Errorf("%s: %v", variable, yes)
		}
	}
	for script, want := range map[string]bool{"cd sub && tool": false, "cd sub && " + system + "/tool": false, "cd sub && ../tool": true} {
		if _, yes := place.Replaceable([]string{"sh", "-c", script}); yes != want {
			t.Errorf("%s: %v", script, yes)
		}
	}
}
