package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// demoFolders returns folders for a demo, with a TMPDIR of its own that is checked to be
// empty at the end of the test.
func demoFolders(t *testing.T) (f folders, tmp string) {
	t.Helper()
	f, tmp = newFolders(t), t.TempDir()
	t.Cleanup(func() {
		for _, dir := range []string{tmp, f.home, f.cwd} {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s: %v, %v: want nothing", dir, left, err)
			}
		}
	})
	return f, tmp
}

// TestEndToEndDemoPiped runs codex-mcp ask --demo where no one can be asked, without a network
// and although the configuration of the user is broken.
func TestEndToEndDemoPiped(t *testing.T) {
	t.Parallel()
	f, tmp := demoFolders(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t), "ask", "--demo")
	cmd.Dir = f.cwd
	cmd.Env = append(os.Environ(), "CODEX_HOME="+filepath.Join(f.home, "none"), "TMPDIR="+tmp, "HTTP_PROXY=http://192.0.2.1:1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%v:\n%s", err, &stderr)
	}
	for _, want := range []string{"This was a demo", "hello.txt: not added", "mkdir greetings: not run", "rm hello.txt: not run"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("standard output lacks %q:\n%s", want, &stdout)
		}
	}
	for _, want := range []string{"codex-mcp: demo: ", "There is no terminal to ask on", "Next: "} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, &stderr)
		}
	}
	for _, once := range []string{"mkdir greetings: not run", "not run: mkdir greetings", "There is no terminal to ask on"} {
		if n := strings.Count(stdout.String()+stderr.String(), once); n > 1 || n == 1 == strings.HasPrefix(once, "not run") {
			t.Errorf("%q is there %d times:\n%s%s", once, n, &stderr, &stdout)
		}
	}
	for _, not := range []string{"--resume", "\x1b"} {
		if strings.Contains(stderr.String(), not) {
			t.Errorf("standard error has %q:\n%s", not, &stderr)
		}
	}
}

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
		"hello.txt: added, exit status 0", "mkdir greetings: ran, exit status 0", "rm hello.txt: not run")
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

// TestDemoFolders has two demos at the same time, each with a folder of its own that others cannot read, and a
// program that is not installed.
func TestDemoFolders(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("PATH", tmp)
	if got := demoNext("codex-mcp"); !strings.HasSuffix(got, "README.md says how to install codex-mcp.") {
		t.Errorf("the end says %q", got)
	}
	first, err := demoFolder()
	if err != nil {
		t.Fatal(err)
	}
	second, err := demoFolder()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(first) != "codex-mcp-demo" || first == second {
		t.Errorf("the folders are %s and %s", first, second)
	}
	for _, dir := range []string{first, second} {
		if f, err := os.Stat(dir); err != nil || f.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v: others can read it", dir, f, err)
		}
	}
}

func TestDemoCommandLine(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"ask", "--demo", "a", "task"}, "--demo brings its own task"},
		{[]string{"ask", "--demo", "--resume", "last"}, "leave out --resume"},
		{[]string{"ask", "--demo", "-C", "."}, "leave out --cd"},
		{[]string{"ask", "--demo", "--engine", "codex"}, "leave out --engine"},
		{[]string{"--demo"}, "unknown flag: --demo"},
		{[]string{"http", "--demo"}, "unknown flag: --demo"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), "codex-mcp", tt.args, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: exit status %d, want 2 and %q:\n%s", tt.args, code, tt.want, &stderr)
		}
	}
}
