package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newTerminal returns both ends of a terminal of 200 columns: that of the person, and that of programs.
func newTerminal(t *testing.T) (person, screen *os.File) {
	t.Helper()
	person = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { person.Close() })
	must.OK(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	must.OK(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: 200}))
	number := must.Get(unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN))(t)
	screen = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { screen.Close() })
	return person, screen
}

// desk is where a person sits at a terminal.
type desk struct {
	*person
	cmd    *exec.Cmd
	tty    *os.File
	screen servertest.Journal // what the terminal shows
	read   chan struct{}      // closed when all is read
}

// at starts the program at a terminal of its own, with this folder for temporary files unless it is "". The model asks before
// each command.
func (s *person) at(tmp string, args ...string) *desk {
	s.t.Helper()
	tty, screen := newTerminal(s.t)
	d := &desk{person: s, cmd: s.command(s.t, args...), tty: tty, read: make(chan struct{})}
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = screen, screen, screen
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	d.cmd.Env = append(d.cmd.Env, "HOME="+s.f.user, "TERM=dumb")
	if tmp != "" {
		d.cmd.Env = append(d.cmd.Env, "TMPDIR="+tmp)
	}
	must.OK(s.t, d.cmd.Start())
	screen.Close()
	go func() {
		defer close(d.read)
		_, _ = io.Copy(&d.screen, tty) // until the last program has closed its end
	}()
	return d
}

// answers waits for a question, and types.
func (d *desk) answers(question, typed string) {
	d.t.Helper()
	until(d.t, "it does not ask "+question, func() bool {
		_, rest, asked := strings.Cut(d.shown(), question)
		return asked && strings.HasSuffix(rest, "\n  > ")
	})
	d.types(typed)
}

func (d *desk) types(text string) {
	d.t.Helper()
	must.Get(d.tty.WriteString(text))(d.t)
}

func (d *desk) shown() string { return strings.ReplaceAll(d.screen.String(), "\r\n", "\n") }

// ends waits for the end of the program, and returns all that the screen showed.
func (d *desk) ends(status int) string {
	d.t.Helper()
	_ = d.cmd.Wait()
	<-d.read
	must.Equal(d.t, fmt.Sprint("exit status ", d.shown()), status, d.cmd.ProcessState.ExitCode())
	return d.shown()
}

// volatile is what differs from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "01997f2e-8c41-7d3a-9b52-6f0e4d1c8a37"},
	{regexp.MustCompile(`(exit \d+) · [0-9.]+m?s`), "$1 · 12ms"},
}

// TestTerminalAsk makes the recordings of docs/tasks.md and testdata/ask.txt; -update writes them there.
func TestTerminalAsk(t *testing.T) {
	t.Parallel()
	s := sit(t)
	s.f.cwd = filepath.Join(s.f.user, "hello")
	must.OK(t, os.Mkdir(s.f.cwd, 0o755))
	config := strings.NewReplacer("$BASE_URL", s.model.BaseURL(), `"chat"`, `"responses"`, `"mock-model"`, `"gpt-5-codex"`,
		`approval_policy = "untrusted"`, "", `sandbox_mode = "danger-full-access"`, "").Replace(usualConfig) // the page shows the defaults
	writeConfig(t, s.f.home, config)
	record := func(file, name, words string, d *desk) {
		t.Helper()
		page := must.Get(os.ReadFile(file))(t)
		home := strings.NewReplacer("'"+s.f.cwd+"'", "/home/you/hello", s.f.user, "/home/you")
		text := "$ codex-mcp " + words + "\n" + home.Replace(d.ends(0))
		for _, v := range volatile {
			text = v.pattern.ReplaceAllString(text, v.text)
		}
		old := regexp.MustCompile(`(?s)(<!-- recording: ` + name + ` -->\n` + "```text\n" + `).*?(` + "```\n<!-- /recording -->)")
		if got := old.ReplaceAllString(string(page), "${1}"+strings.ReplaceAll(text, "$", "$$")+"${2}"); *update {
			must.OK(t, os.WriteFile(file, []byte(got), 0o644))
		} else if diff := cmp.Diff(string(page), got); diff != "" || !old.Match(page) {
			t.Errorf("the recording %q (-page +now):\n%s", name, diff)
		}
	}
	const addHello = "*** Begin Patch\n*** Add File: hello.sh\n+#!/bin/sh\n+# Greets whoever runs it.\n+echo \"hello, ${USER:-you}\"\n*** End Patch\n"
	s.model.Add(
		providertest.Turn{
			Reasoning: []string{"The folder is empty. ", "A shell script is enough."}, Text: []string{"I'll write a small ", "script and run it."},
			ToolCalls: []providertest.ToolCall{providertest.Tool("c1", "apply_patch", map[string]any{"input": addHello})},
		},
		providertest.Call(providertest.Shell("c2", "sh", "hello.sh")),
		providertest.Say("Done: `hello.sh` greets its user.\n"))
	d := s.at("", "ask", "-a", "untrusted", "write a script that says hello, and run it")
	d.answers("Allow codex-mcp to apply", "y\n")
	d.answers("Allow codex-mcp to run `sh hello.sh`", "y\n")
	record(filepath.Join(root, "docs", "tasks.md"), "approve", `ask -a untrusted "write a script that says hello, and run it"`, d)

	s.model.Reset(providertest.Call(providertest.Shell("c3", "git", "push", "origin", "main")), providertest.Say("I did not push. Run the tests, then ask me again.\n"))
	d = s.at("", "ask", "-a", "untrusted", "publish it")
	d.answers("Allow codex-mcp to run `git push origin main`", "n not before the tests have passed\n")
	record("testdata/ask.txt", "deny", `ask -a untrusted "publish it"`, d)

	s.model.Reset(providertest.Call(providertest.Shell("c4", "sh", "-c", "seq 30; sleep 100")))
	d = s.at("", "ask", "-a", "untrusted", "count to thirty, slowly")
	d.answers("Allow codex-mcp to run", "y\n")
	until(t, "it does not count", func() bool { return strings.Contains(d.shown(), "\n$ sh -c") })
	d.types("\x03")
	d.ends(130)

	s.model.Reset(providertest.Say("One, two, three.\n"))
	record("testdata/ask.txt", "resume", `ask --resume last "to three will do"`, s.at("", "ask", "--resume", "last", "to three will do"))
	requests := s.model.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "count to thirty, slowly") {
		t.Errorf("the request lacks the first turn: %s", body)
	}
}

// TestTerminalDemo answers the questions of codex-mcp ask --demo: what was approved ran, and what was refused did not.
func TestTerminalDemo(t *testing.T) {
	t.Parallel()
	built(t)
	s := sit(t)
	tmp := t.TempDir()
	d := s.at(tmp, "ask", "--demo")
	d.answers("Allow codex-mcp to apply", "y\n")
	d.answers("Allow codex-mcp to run `mkdir greetings`", "y\n")
	d.answers("Allow codex-mcp to run `rm hello.txt`", "n\n")
	screen := d.ends(0)
	for _, want := range []string{
		"native engine · demo-script", "new file hello.txt", "+hello", "applied", "$ mkdir greetings", "exit 0", "not run: rm hello.txt (declined)",
		"Next: codex-mcp doctor",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "lways") {
		t.Errorf("a rule is offered, which goes at the end:\n%s", screen)
	}
	if len(s.model.Requests()) > 0 {
		t.Error("the demo asked the configured model")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: want nothing", left, err)
	}
}

// TestTerminalIsOutOfReach runs a command that tries to write to the terminal and to read what the user types.
func TestTerminalIsOutOfReach(t *testing.T) {
	t.Parallel()
	s := sit(t, providertest.Call(providertest.Shell("c", "sh", "-c", "exec 2>/dev/null; echo forged >/dev/tty || head -c1 </dev/tty || tty")), repeated)
	d := s.at("", "ask", "look for the terminal")
	d.answers("Allow codex-mcp to run", "y\n")
	if screen := d.ends(0); strings.Contains(screen, "\nforged") || !strings.Contains(screen, "  not a tty") || strings.Contains(screen, "\x1b[") {
		t.Errorf("the command reached the terminal:\n%s", screen)
	}
}

// TestTerminalQuestion types an answer before the question is there, and ends the program by keys during a question. Nothing runs.
func TestTerminalQuestion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before string // typed before the question
		end    func(d *desk)
		status int
	}{
		"typed before in part": {before: "y", end: func(d *desk) { d.types("n\n") }},
		"ctrl-C":               {end: func(d *desk) { d.types("\x03") }, status: 130},
		"ctrl-D":               {end: func(d *desk) { d.types("\x04") }, status: 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait := make(chan struct{})
			s := sit(t, providertest.Turn{Wait: wait, ToolCalls: gitInit.ToolCalls}, providertest.Say("Denied."))
			d := s.at("", "ask", "make a repository")
			awaitRequests(t, s.model, 1)
			until(t, "it does not say where it works", func() bool {
				return strings.Contains(strings.ReplaceAll(d.shown(), "'", ""), filepath.Base(s.f.cwd)+"\n")
			})
			d.types(tt.before)
			until(t, "the terminal does not show what was typed", func() bool { return strings.HasSuffix(strings.TrimSpace(d.shown()), strings.TrimSpace(tt.before)) })
			close(wait)
			d.answers("Allow codex-mcp to run", "what?\n")
			d.answers("That is no answer, and nothing was decided.", "")
			tt.end(d)
			d.ends(tt.status)
			if _, err := os.Stat(filepath.Join(s.f.cwd, ".git")); err == nil {
				t.Errorf("the command ran:\n%s", d.shown())
			}
		})
	}
}

// TestTerminalServer starts the server at a terminal, where a person may wait for a prompt.
func TestTerminalServer(t *testing.T) {
	t.Parallel()
	d := sit(t).at("", "--engine", "native")
	until(t, "it does not say what it is", func() bool {
		return strings.Contains(d.shown(), "codex-mcp is an MCP server: it waits for a client's JSON-RPC messages")
	})
	d.types("\x04") // the end of the input
	d.ends(0)
}
