package main

import (
	"bytes"
	"context"
	"io"
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
	for _, want := range []string{"codex-mcp: demo: ", "Without a terminal no question can be asked", "A background task", "status running", "status completed"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, &stderr)
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
	done := s.presses("y", "y", "n")
	o, err := parse("codex-mcp", []string{"ask", "--demo"}, &s.errs, &s.errs)
	if err != nil {
		t.Fatal(err)
	}
	code := demonstrate(o, &s.errs, func() int { return o.playDemo(t.Context(), s.terminal(), s.signals) })
	done()
	if code != 0 {
		t.Errorf("exit status %d: %s", code, s.errs.String())
	}
	s.shows("native engine · demo-script", "new file hello.txt", "+hello", "✓ approved", "$ mkdir greetings", "exit 0", "✗ denied",
		"hello.txt: added, exit status 0", "mkdir greetings: ran, exit status 0", "rm hello.txt: not run", "A background task", "status completed", "Next: codex-mcp doctor")
	if len(s.model.Requests()) > 0 {
		t.Error("the demo asked the configured model")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: want nothing", left, err)
	}
}

// TestEndToEndDemoServer runs codex-mcp --demo behind a client that approves everything.
func TestEndToEndDemoServer(t *testing.T) {
	t.Parallel()
	f, tmp := demoFolders(t)
	cmd := exec.Command("env", "TMPDIR="+tmp, built(t), "--demo")
	p := launch(t, f, cmd)
	seen := map[int]bool{}
	p.hello(`{"elicitation":{}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x","cwd":"` + f.cwd + `"}}}`)
	refused := p.expect(map[string]any{"id": 1.0}, seen)
	if !strings.Contains(line(refused), "argument /cwd is locked") {
		t.Errorf("a call in another folder: %s", line(refused))
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x"}}}`)
	for range 3 {
		q := p.expect(map[string]any{"method": "elicitation/create"}, seen)
		p.send(`{"jsonrpc":"2.0","id":` + dig(t, q, "id") + `,"result":{"action":"accept","content":{}}}`)
	}
	result := line(p.expect(map[string]any{"id": 2.0}, seen))
	for _, want := range []string{"This was a demo", "hello.txt: added, exit status 0", "mkdir greetings: ran, exit status 0", "rm hello.txt: ran, exit status 0"} {
		if !strings.Contains(result, want) {
			t.Errorf("the result lacks %q: %s", want, result)
		}
	}
	p.stdin.Close()
	if code := p.wait(); code != 0 || !strings.Contains(p.errors(), "codex-mcp: demo: ") {
		t.Errorf("exit status %d: %s", code, p.errors())
	}
}

// TestEndToEndDemoUnasked runs codex-mcp --demo behind a client that cannot be asked: the result says once why a
// patch and two commands were refused, and what helps.
func TestEndToEndDemoUnasked(t *testing.T) {
	t.Parallel()
	f, tmp := demoFolders(t)
	p := launch(t, f, exec.Command("env", "TMPDIR="+tmp, built(t), "--demo"))
	p.hello(`{}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"x"}}}`)
	result := dig(t, p.expect(map[string]any{"id": 1.0}, map[int]bool{}), "result.structuredContent.content")
	for words, want := range map[string]int{": not run (this MCP client cannot": 2, ": not added (this MCP client cannot": 1, "Use a client that supports elicitation": 1} {
		if got := strings.Count(result, words); got != want {
			t.Errorf("%q %d times, want %d: %s", words, got, want, result)
		}
	}
	p.stdin.Close()
	p.wait()
}

// TestDemoFolders plays two demos at the same time, each in a folder of its own, with a program that is
// not installed.
func TestDemoFolders(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("PATH", tmp)
	if got := demoNext("codex-mcp"); !strings.HasSuffix(got, "README.md says how to install codex-mcp.") {
		t.Errorf("the end says %q", got)
	}
	var folders []string
	play := func(inner func() int) int {
		o, err := parse("codex-mcp", []string{"ask", "--demo"}, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return demonstrate(o, io.Discard, func() int {
			folders = append(folders, o.folder)
			if f, err := os.Stat(filepath.Dir(o.folder)); err != nil || f.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v: others can read it", o.folder, f, err)
			}
			return inner()
		})
	}
	if code := play(func() int { return play(func() int { return 0 }) }); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if len(folders) != 2 || filepath.Base(filepath.Dir(folders[0])) != "codex-mcp-demo" || folders[0] == folders[1] {
		t.Errorf("the demos were played in %q", folders)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: want nothing", left, err)
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
		{[]string{"--demo", "--engine", "codex"}, "leave out --engine"},
		{[]string{"--demo", "--connect", "http://127.0.0.1:1/mcp"}, "leave out --connect"},
		{[]string{"mcp-server", "--demo", "--shared"}, "leave out --shared"},
		{[]string{"http", "--demo"}, "--demo is a flag of"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), "codex-mcp", tt.args, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: exit status %d, want 2 and %q:\n%s", tt.args, code, tt.want, &stderr)
		}
	}
}
