package main

import (
	"os"
	"strings"
	"testing"
)

// TestEndToEndDemo answers the questions of codex-mcp ask --demo in a terminal: what was
// approved ran, and what was refused did not.
func TestEndToEndDemo(t *testing.T) {
	s := sit(t)
	t.Setenv("TMPDIR", t.TempDir())
	done := s.types("y", "y", "n")
	o, err := parse("codex-mcp", []string{"ask", "--demo"}, &s.errs)
	if err != nil {
		t.Fatal(err)
	}
	code := o.ask.playDemo(t.Context(), s.terminal(), s.signals)
	done()
	if code != 0 {
		t.Errorf("exit status %d: %s", code, s.errs.String())
	}
	s.shows("native engine · demo-script", "new file hello.txt", "+hello", "✓ approved", "$ mkdir greetings", "exit 0", "✗ denied",
		"applied", "not run: rm hello.txt (declined)")
	if strings.Contains(s.errs.String(), "lways") {
		t.Errorf("a rule is offered, which goes at the end: %s", s.errs.String())
	}
	if !strings.Contains(s.errs.String(), "Next: codex-mcp doctor") {
		t.Errorf("it does not say what comes next: %s", s.errs.String())
	}
	if len(s.model.Requests()) > 0 {
		t.Error("the demo asked the configured model")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: want nothing", left, err)
	}
}

// TestDemoFolder makes a folder that others cannot read, for a program that is not installed.
func TestDemoFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	if got := demoNext("codex-mcp"); !strings.HasSuffix(got, "README.md says how to install codex-mcp.") {
		t.Errorf("the end says %q", got)
	}
	dir, err := demoFolder()
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.Stat(dir); err != nil || f.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v: others can read it", dir, f, err)
	}
}
