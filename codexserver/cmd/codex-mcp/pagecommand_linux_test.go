package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndPageLink loses the links of two servers and of ask with the same home. codex-mcp page
// lists them, and prints a new link at a terminal, which opens the page for the question.
func TestEndToEndPageLink(t *testing.T) {
	t.Parallel()
	turns := []providertest.Turn{providertest.Call(providertest.Shell("c", "mkdir", "made")), providertest.Say("hello")}
	f, _ := prepare(t, "untrusted", turns...)
	s := start(t, f, "--engine", "native", "--approvals", "page")
	s.hello(`{}`)
	s.call("codex", map[string]any{"prompt": "make a folder"})
	command := func(id string) *exec.Cmd {
		return f.command(t.Context(), built(t), append([]string{"page"}, strings.Fields(id)...)...)
	}
	page := func(id string) (int, string) { // without a terminal
		t.Helper()
		cmd := command(id)
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// atTerminal returns the lines that a person sees.
	atTerminal := func(id string) []string {
		t.Helper()
		person, screen := newTerminal(t)
		cmd := command(id)
		cmd.Stdout = screen
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("codex-mcp page %s: %v %s", id, err, &stderr)
		}
		lines, in := []string{}, bufio.NewReader(person)
		for len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], "It opens the page of process ") {
			line := must.Get(in.ReadString('\n'))(t)
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	s.await("a link, which nobody reads", func(m map[string]any) bool {
		return contains(m, map[string]any{"method": "notifications/message", "params": map[string]any{"level": "warning"}}) && goldenLink.MatchString(line(m))
	})
	v := servertest.Visit(t, atTerminal("")[0])
	v.Events().Question("open")
	if code, out := page(""); code != 1 || !strings.Contains(out, errNoTerminal.Error()) || strings.Contains(out, "/#") {
		t.Errorf("without a terminal: %d %s", code, out)
	}

	g := f // the same home
	if g.cwd = filepath.Join(f.user, "other"); os.Mkdir(g.cwd, 0o755) != nil {
		t.Fatal("no folder")
	}
	model := providertest.New(turns...)
	t.Cleanup(model.Close)
	asking := launch(t, g, exec.Command(built(t), "--engine", "native", "ask", "--approvals", "page", "-c", "approvals.page_port="+freePort(t),
		"-c", "approvals.page_origin=https://approvals.example.com", "-c", "model_providers.mock.base_url="+model.BaseURL(), "make a folder"))
	until(t, "ask has no page", func() bool { return strings.Contains(asking.errors(), "https://approvals.example.com/#") })

	code, out := page("")
	for _, want := range []string{fmt.Sprintf("process %d: http://127.0.0.1:", s.cmd.Process.Pid), "in " + f.cwd + ", open questions 1, since ", "in " + g.cwd + ", ", "there are several"} {
		if code != 1 || !strings.Contains(out, want) || strings.Contains(out, "/#") {
			t.Errorf("the list lacks %q: %d %s", want, code, out)
		}
	}
	again := atTerminal(strconv.Itoa(s.cmd.Process.Pid))[0]
	if !strings.HasPrefix(again, v.Origin+"/#") {
		t.Errorf("the link is %s", again)
	}
	links := atTerminal(strconv.Itoa(asking.cmd.Process.Pid))
	secret, ok := strings.CutPrefix(links[0], "https://approvals.example.com/#")
	_, here, _ := strings.Cut(links[1], "On the machine itself: ")
	if !ok || !strings.HasSuffix(here, "/#"+secret) {
		t.Errorf("behind a proxy the links are %q", links)
	}
	if code, out := page("nothing"); code != 1 || !strings.Contains(out, `no process "nothing"`) {
		t.Errorf("an unknown id: %d %s", code, out)
	}

	for _, link := range []string{again, here} {
		v := servertest.Visit(t, link)
		v.Answer(v.Events().Question("open").ID, `{"action":"accept"}`)
	}
	s.answer()
	s.stdin.Close()
	for _, p := range []*process{s, asking} {
		must.Equal(t, "exit status", 0, p.wait())
	}
	for _, dir := range []string{f.cwd, g.cwd} {
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Errorf("the command did not run: %v", err)
		}
	}
	if code, out := page(""); code != 1 || !strings.Contains(out, errNoPage.Error()) {
		t.Errorf("without a process: %d %s", code, out)
	}
}
