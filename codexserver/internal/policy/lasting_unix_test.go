//go:build unix

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
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
		if other, ok := policy.Propose(&q); ok && (name != "judged others" || other.Rule.Equal(p.Rule)) {
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

// TestExactPushDependsOnTheRemote accepts exact words of git push, and then changes where the
// remote leads.
func TestExactPushDependsOnTheRemote(t *testing.T) {
	w := newWorkplace(t)
	argv := []string{"git", "push", "--force-with-lease", "origin", "main"}
	p, err := policy.Explain(w.ask(argv, false))
	if err != nil || len(p.Rule.Exact) == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, ok := policy.Covers([]policy.Rule{p.Rule}, w.ask(argv, false)); !ok {
		t.Error("the rule does not cover what was asked")
	}
	if err := write(filepath.Join(w.dir, ".git/config"), strings.Replace(pushing, "localhost", "evil.example", 1)); err != nil {
		t.Fatal(err)
	}
	if _, ok := policy.Covers([]policy.Rule{p.Rule}, w.ask(argv, false)); ok {
		t.Error("the rule covers another remote")
	}
}

// TestRuleEdges has rules as a file of rules could have them, and as a person could not read them.
func TestRuleEdges(t *testing.T) {
	for name, r := range map[string]policy.Rule{
		"patches":                  {Patches: "/x", Folder: "/x"},
		"exact words":              {Exact: []string{"make"}, Content: "c", Folder: "/x"},
		"a push":                   {Prefix: []string{"git", "push"}, Content: "c", Folder: "/x", Outside: true},
		"everywhere already":       {Prefix: []string{"gofmt"}},
		"more than a person reads": {Prefix: []string{"npm", "run", strings.Repeat("x", 500)}, Folder: "/x"},
	} {
		if wide, ok := (policy.Proposal{Rule: r}).Everywhere(); ok {
			t.Errorf("%s: %+v", name, wide)
		}
	}
	if wide, ok := (policy.Proposal{Rule: policy.Rule{Prefix: []string{"gofmt"}, Folder: "/x"}}).Everywhere(); !ok || wide.Rule.Folder != "" {
		t.Errorf("gofmt: %+v", wide)
	}
	if words := (policy.Rule{Exact: []string{"make"}, Content: "c", Folder: "/x"}).Words(); !strings.HasPrefix(words, "exactly `make` in /x, in the sandbox") {
		t.Error(words)
	}

	w := newWorkplace(t)
	if _, ok := policy.Covers([]policy.Rule{{}}, w.ask([]string{"sh", "-c", "$X"}, true)); ok {
		t.Error("a rule without words covers a command")
	}
	known := w.ask([]string{"wc", "x.py"}, true)
	p, ok := policy.Propose(known)
	if !ok {
		t.Fatal("no rule is proposed")
	}
	r := p.Rule
	r.Folder = ""
	if _, ok := policy.Covers([]policy.Rule{r}, known); ok {
		t.Error("a rule for exact words covers every folder")
	}
	for _, argv := range [][]string{{"gofmt", "-l", "a.go"}, {"go", "vet"}} { // with beginnings of one word, and of two
		prefix := argv[:1:1]
		if argv[0] == "go" {
			prefix = argv
		}
		q := &protocol.ExecApprovalRequest{Command: argv, Cwd: w.dir, Placed: true, Confinable: true}
		if confined, ok := policy.Covers([]policy.Rule{{Prefix: prefix}}, q); !ok || !confined {
			t.Errorf("%q: a rule for every folder does not cover it", argv)
		}
	}

	for _, name := range []string{"a\x01b", "a\ufffdb", "a\u200bb", "a\u3164b", "a\xffb", strings.Repeat("a", 200) + "/" + strings.Repeat("b", 200)} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o777); err != nil {
			continue // a system may have no such names
		}
		q := &protocol.ExecApprovalRequest{Command: []string{"go", "vet"}, Cwd: dir, Placed: true, Confinable: true}
		if p, ok := policy.Propose(q); ok {
			t.Errorf("%q: a person could not read %q", name, p.Words)
		}
	}

	// Without a repository the rule is for the folder. The home directory is none.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir, "sub")
	if err := os.MkdirAll(sub, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ home, dir, want string }{{dir, sub, sub}, {"/nonexistent", sub, dir}, {"", sub, dir}, {"/nonexistent", "/", "/"}} {
		t.Setenv("HOME", tt.home)
		q := &protocol.ExecApprovalRequest{Command: []string{"go", "vet"}, Cwd: tt.dir, Placed: true, Confinable: true}
		if p, ok := policy.Propose(q); !ok || p.Rule.Folder != tt.want {
			t.Errorf("%s, at home in %q: %+v", tt.dir, tt.home, p.Rule)
		}
	}
}
