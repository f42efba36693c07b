//go:build terminal

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// pane is a terminal of tmux with a shell, in which a test types as a user does.
type pane struct {
	t      *testing.T
	model  *providertest.Server
	home   string // holds the folder "hello", where the shell is
	socket string
}

// newPane opens a terminal of 100 columns. Without tmux it fails.
func newPane(t *testing.T) *pane {
	t.Helper()
	home := newHome(t)
	t.Cleanup(func() { os.RemoveAll(home) })
	p := &pane{t: t, model: providertest.New(), home: home, socket: filepath.Join(home, "tmux")}
	t.Cleanup(p.model.Close)
	bin := built(t)
	for _, dir := range []string{"bin", "hello", ".codex"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bin, filepath.Join(home, "bin", "codex-mcp")); err != nil {
		t.Fatal(err)
	}
	p.configure(strings.NewReplacer())
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "60", "-c", filepath.Join(home, "hello"),
		"env", "-i", "HOME="+home, "PATH="+filepath.Join(home, "bin")+":/usr/bin:/bin", "TERM=tmux-256color",
		"LANG=C.UTF-8", "PS1=$ ", "CODEX_BIN=/no/codex", "TMPDIR="+home, "bash", "--noprofile", "--norc")
	t.Cleanup(func() { p.tmux("kill-server") })
	p.done()
	return p
}

// configure writes config.toml, with what a person would have there in place of the names of tests.
func (p *pane) configure(changes *strings.Replacer) {
	p.t.Helper()
	config := strings.NewReplacer("$BASE_URL", p.model.BaseURL(), `"chat"`, `"responses"`, `"mock-model"`, `"gpt-5-codex"`).Replace(usualConfig)
	if err := os.WriteFile(filepath.Join(p.home, ".codex", "config.toml"), []byte(changes.Replace(config)), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// newHome makes a folder whose path is as long as /home/you, because the terminal breaks lines
// before the recording replaces the one with the other.
func newHome(t *testing.T) string {
	t.Helper()
	for i := range 1000 {
		home := fmt.Sprintf("/tmp/a%03d", i)
		if err := os.Mkdir(home, 0o700); err == nil {
			return home
		} else if !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	t.Fatal("a thousand folders are left in /tmp")
	return ""
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("tmux %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// shows returns the text of the terminal, including what has scrolled away.
func (p *pane) shows(options ...string) string {
	p.t.Helper()
	return strings.TrimRight(p.tmux(append([]string{"capture-pane", "-p", "-S", "-"}, options...)...), "\n ")
}

// await waits until the last line begins with that text.
func (p *pane) await(text string) {
	p.t.Helper()
	p.until(func(screen string) bool { return strings.HasPrefix(last(screen), text) }, "the last line begins with "+text)
}

// done waits for the shell.
func (p *pane) done() {
	p.t.Helper()
	p.until(func(screen string) bool { return last(screen) == "$" }, "the shell is back")
}

func last(screen string) string { return screen[strings.LastIndex(screen, "\n")+1:] }

func (p *pane) until(done func(screen string) bool, what string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		screen := p.shows()
		if done(screen) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("timed out waiting until %s:\n%s", what, screen)
		}
	}
}

// types types text, and the Enter key when the terminal has shown it.
func (p *pane) types(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-l", text)
	joined := func(s string) string { return strings.ReplaceAll(s, "\n", "") }
	p.until(func(screen string) bool { return strings.HasSuffix(joined(screen), text) }, "the terminal shows what was typed")
	p.tmux("send-keys", "Enter")
}

// asked waits until the question can be answered.
func (p *pane) asked(question string) {
	p.t.Helper()
	p.until(func(screen string) bool {
		_, rest, asked := strings.Cut(screen, question)
		return asked && strings.HasSuffix(rest, "\n  >")
	}, "it asks "+question)
}

// answer waits for the question and types a line.
func (p *pane) answer(question, line string) {
	p.t.Helper()
	p.asked(question)
	p.tmux("send-keys", "-l", line)
	p.tmux("send-keys", "Enter")
}

// clear clears the screen and its history.
func (p *pane) clear() {
	p.t.Helper()
	p.types("clear")
	p.until(func(screen string) bool { return strings.TrimSpace(screen) == "$" }, "the screen is clear")
	p.tmux("clear-history")
}

var volatile = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "01997f2e-8c41-7d3a-9b52-6f0e4d1c8a37"},
	{regexp.MustCompile(`(exit \d+) · [0-9.]+ m?s`), "$1 · 12 ms"},
	{regexp.MustCompile(`· \d+ s ·`), "· 2 s ·"},
}

// recording returns the text of the terminal, with placeholders for what differs from run
// to run.
func (p *pane) recording() string {
	p.t.Helper()
	text := strings.ReplaceAll(p.shows("-J"), p.home, "/home/you")
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	return strings.TrimRight(strings.TrimSuffix(text, "\n$"), "\n ") + "\n"
}

const addHello = "*** Begin Patch\n*** Add File: hello.sh\n+#!/bin/sh\n+# Greets whoever runs it.\n+echo \"hello, ${USER:-you}\"\n*** End Patch\n"

// TestTerminalAsk makes the recordings of docs/use/ask.md; -update writes them there.
func TestTerminalAsk(t *testing.T) {
	p := newPane(t)
	p.configure(strings.NewReplacer(`approval_policy = "untrusted"`, "", `sandbox_mode = "danger-full-access"`, "")) // the page shows the defaults
	recorded := map[string]string{}
	p.model.Add(
		providertest.Turn{
			Reasoning: []string{"The folder is empty. ", "A shell script is enough."}, Text: []string{"I'll write a small ", "script and run it."},
			ToolCalls: []providertest.ToolCall{providertest.Tool("c1", "apply_patch", map[string]any{"input": addHello})},
		},
		providertest.Call(providertest.Shell("c2", "sh", "hello.sh")),
		providertest.Say("Done: `hello.sh` greets its user.\n"))
	p.types(`codex-mcp ask -a untrusted "write a script that says hello, and run it"`)
	p.answer("Allow codex-mcp to apply", "y")
	p.answer("Allow codex-mcp to run `sh hello.sh`", "y")
	p.done()
	recorded["approve"] = p.recording()
	if strings.Contains(p.shows("-e"), "\x1b[") {
		t.Errorf("there are control sequences:\n%q", p.shows("-e"))
	}

	p.clear()
	p.model.Reset(providertest.Call(providertest.Shell("c3", "git", "push", "origin", "main")), providertest.Say("I did not push. Run the tests, then ask me again.\n"))
	p.types(`codex-mcp ask -a untrusted "publish it"`)
	p.answer("Allow codex-mcp to run `git push origin main`", "n not before the tests have passed")
	p.done()
	recorded["deny"] = p.recording()
	requests := p.model.Requests()
	if got := requests[len(requests)-1].LastToolOutput(); !strings.Contains(got, "not before the tests have passed") {
		t.Errorf("the model received %q", got)
	}

	p.clear()
	p.model.Reset(providertest.Call(providertest.Shell("c4", "sh", "-c", "seq 30; sleep 100")))
	p.types(`codex-mcp ask -a untrusted "count to thirty, slowly"`)
	p.answer("Allow codex-mcp to run", "y")
	p.await("  10")
	p.tmux("send-keys", "C-c")
	p.done()
	p.status(130)

	p.clear()
	p.model.Reset(providertest.Say("One, two, three.\n"))
	p.types(`codex-mcp ask --resume last "to three will do"`)
	p.done()
	recorded["resume"] = p.recording()
	requests = p.model.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "count to thirty, slowly") {
		t.Errorf("the request lacks the first turn: %s", body)
	}
	p.status(0)
	keepRecordings(t, recorded)
}

// status asks the shell for the exit status of the command before.
func (p *pane) status(want int) {
	p.t.Helper()
	p.types("echo status $?")
	p.until(func(screen string) bool { return strings.Contains(screen, "\nstatus ") }, "the status is repeated")
	if screen := p.shows(); !strings.Contains(screen, fmt.Sprintf("\nstatus %d\n", want)) {
		p.t.Errorf("the exit status is not %d:\n%s", want, screen)
	}
}

// keepRecordings compares the recordings with those of docs/use/ask.md.
func keepRecordings(t *testing.T, recorded map[string]string) {
	t.Helper()
	file := filepath.Join(root, "docs", "use", "ask.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, got := range recorded {
		begin, end := "<!-- recording: "+name+" -->\n", "<!-- /recording -->"
		before, rest, ok := strings.Cut(text, begin)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Errorf("%s has no place for the recording %q", file, name)
			continue
		}
		block := "```text\n" + got + "```\n"
		if *update {
			text = before + begin + block + end + after
		} else if diff := cmp.Diff(old, block); diff != "" {
			t.Errorf("the recording %q (-page +now):\n%s", name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTerminalIsOutOfReach runs a command that tries to write to the terminal and to read what the user types.
func TestTerminalIsOutOfReach(t *testing.T) {
	p := newPane(t)
	p.model.Add(providertest.Call(providertest.Shell("c", "sh", "-c", "echo forged >/dev/tty || head -c1 </dev/tty || tty")), repeated)
	p.types(`codex-mcp ask "look for the terminal"`)
	p.answer("Allow codex-mcp to run", "y")
	p.done()
	screen := p.shows()
	if strings.Contains(screen, "\nforged") || !strings.Contains(screen, "  not a tty") {
		t.Errorf("the command reached the terminal:\n%s", screen)
	}
}

// TestTerminalTypedBefore types an answer before the question is there, whole and in part.
func TestTerminalTypedBefore(t *testing.T) {
	for _, typed := range []string{"y\n", "y"} {
		p := newPane(t)
		wait := make(chan struct{})
		p.model.Add(providertest.Turn{Wait: wait, ToolCalls: gitInit.ToolCalls}, providertest.Say("Denied."))
		p.types(`codex-mcp ask "make a repository"`)
		awaitRequests(t, p.model, 1)
		p.tmux("send-keys", "-l", typed)
		p.until(func(screen string) bool { return strings.Contains(screen, "\ny") }, "the terminal shows what was typed")
		close(wait)
		p.answer("Allow codex-mcp to run", "n")
		p.done()
		if _, err := os.Stat(filepath.Join(p.home, "hello", ".git")); err == nil || !strings.Contains(p.shows(), "✗ denied") {
			t.Errorf("%q answered:\n%s", typed, p.shows())
		}
	}
}

// TestTerminalEnds ends the program during a question, in every way.
func TestTerminalEnds(t *testing.T) {
	p := newPane(t)
	for name, end := range map[string]func(pid int){
		"ctrl-C":  func(int) { p.tmux("send-keys", "C-c") },
		"ctrl-D":  func(int) { p.tmux("send-keys", "C-d") },
		"SIGTERM": func(pid int) { syscall.Kill(pid, syscall.SIGTERM) },
		"SIGINT":  func(pid int) { syscall.Kill(pid, syscall.SIGINT) },
	} {
		p.clear()
		p.model.Reset(gitInit)
		p.types("sh -c 'echo $$ > pid; exec codex-mcp ask \"make a repository\"'")
		p.answer("Allow codex-mcp to run", "what?")
		p.asked("That is no answer.")
		var pid int
		raw, err := os.ReadFile(filepath.Join(p.home, "hello", "pid"))
		if err == nil {
			_, err = fmt.Sscan(string(raw), &pid)
		}
		if err != nil {
			t.Fatal(err)
		}
		end(pid)
		p.done()
		p.status(130)
		if _, err := os.Stat(filepath.Join(p.home, "hello", ".git")); err == nil {
			t.Errorf("%s: the command ran", name)
		}
	}
}
