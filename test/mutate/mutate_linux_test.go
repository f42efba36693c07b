package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// listed are the packages that survivors.txt has survivors of, or of which none survives.
var listed = []string{
	"elicit", "codexserver/internal/board", "codexserver/internal/patch", "codexserver/internal/policy",
	"codexserver/internal/policy/rulefile", "codexserver/internal/sandbox", "jsonrpc",
}

// TestListIsTrue checks that every survivor with a reason is still a mutant: that its line is
// there, and unchanged.
func TestListIsTrue(t *testing.T) {
	accepted, err := parseList(survivors)
	if err != nil {
		t.Fatal(err)
	}
	if len(accepted.names) < 50 {
		t.Errorf("only %d survivors", len(accepted.names))
	}
	var patterns []string
	for _, p := range listed {
		patterns = append(patterns, "./"+p)
	}
	t.Chdir("../..")
	packages, err := load(patterns, false)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range packages {
		for _, m := range p.mutants {
			known[m.name] = true
		}
	}
	for name := range accepted.names {
		if !known[name] {
			t.Errorf("survivors.txt has a line that is no mutant any more: %s", name)
		}
	}
	for _, pattern := range accepted.patterns {
		n := 0
		for name := range known {
			if !pattern.has(name) {
				continue
			}
			if n++; accepted.names[name] != "" {
				t.Errorf("survivors.txt has a mutant also by the pattern %s %s: %s", pattern.file, pattern.rest, name)
			}
		}
		if n < 2 {
			t.Errorf("a pattern of survivors.txt matches %d mutants: %s %s", n, pattern.file, pattern.rest)
		}
	}
}

func TestParseList(t *testing.T) {
	l, err := parseList("# a comment\n\na: b\nc: d\n\tsame: why\n^p/a.go F: skip (x|y)\n\twords: why\n")
	if err != nil || len(l.names) != 2 || l.names["c: d"] != "same: why" {
		t.Fatalf("%v, %v", l, err)
	}
	for name, want := range map[string]bool{"c: d": true, "c": false, "p/a.go F: skip y": true, "p/a.go F: skip yes": false, "q/p/a.go F: skip y": false} {
		if l.has(name) != want {
			t.Errorf("has %q: %t", name, !want)
		}
	}
	for _, bad := range []string{
		"\tsame: why\n", "a: b\n", "a: b\n\twhy\n", "a: b\n\tapproves: why\n",
		"a: b\n\tsame: x\na: b\n\tsame: y\n", "a: b\na: b\n\tsame: x\n",
		"^a.go F: .*\n", "^a.go F: .*\n\tguarded: why\n", "^.*\n\twords: why\n", "^a.go F(: .*\n\twords: why\n",
	} {
		if l, err := parseList(bad); err == nil {
			t.Errorf("%q: %v", bad, l)
		}
	}
}

// TestRun finds the fate of the mutants of a small package: each is killed but those that its
// test cannot notice.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test/m\n\ngo 1.26\n",
		"p.go": `package m

import (
	"errors"
	"slices"
)

type verdict string

const (
	no  verdict = "no"
	yes verdict = "yes"
)

var safe = []string{"ls", "cat"}

const most = 3

func bound(words []string) error {
	if len(words) > most {
		return errors.New("too many")
	}
	return nil
}

var mixed any = slices.Contains([]any(nil), "ls") // the string is no call, nor is the type

var isMixed, _ = mixed.(bool)

func judge(words []string) verdict {
	if len(words) == 0 {
		return no
	}
	for _, s := range safe {
		if s == words[0] {
			return yes
		}
	}
	return no
}
`,
		"other_test.go": `package m_test

import "testing"

func TestBound(*testing.T) {}
`,
		"p_test.go": `package m

import "testing"

func TestBound(t *testing.T) {
	for n, want := range map[int]bool{3: false, 4: true} {
		if err := bound(make([]string, n)); (err != nil) != want {
			t.Error(err)
		}
	}
}

func TestJudge(t *testing.T) {
	for word, want := range map[string]verdict{"ls": yes, "rm": no} {
		if got := judge([]string{word}); got != want {
			t.Errorf("%s: %s", word, got)
		}
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	packages, err := load([]string{"."}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := packages[0]
	if err := p.test(t.Context(), 2, new(list)); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, m := range p.mutants {
		if _, after, _ := strings.Cut(m.name, "p.go "); m.fate == survived || m.fate == unreached {
			left[after] = true
		}
	}
	for _, want := range []string{`safe: another string than "cat"`, "judge: false: len(words) == 0", "judge: no is yes in return no"} {
		if !left[want] {
			t.Errorf("killed: %s", want)
		}
	}
	for _, want := range []string{`safe: another string than "ls"`, "judge: true: s == words[0]", "judge: yes is no in return yes", "judge: no is yes in return no #2", "judge: skip the loop over safe", "bound: twice most in len(words) > most", `bound: lost: return errors.New("too many")`, "bound: > is >=: len(words) > most"} {
		if left[want] {
			t.Errorf("survives: %s", want)
		}
	}
	if score := p.score(); !strings.HasPrefix(score, "example.test/m: ") || !strings.Contains(score, "survived") {
		t.Error(score)
	}
}
