package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndPageLink loses the links of a server and of ask with the same home. codex-mcp page prints new
// ones at a terminal, which open the pages for the questions.
func TestEndToEndPageLink(t *testing.T) {
	t.Parallel()
	turns := []providertest.Turn{providertest.Call(providertest.Shell("c", "mkdir", "made")), providertest.Say("hello")}
	f, _ := prepare(t, "untrusted", turns...)
	s := start(t, f, "--engine", "native", "--approvals", "page")
	s.hello(`{}`)
	s.call("codex", map[string]any{"prompt": "make a folder"})
	page := func() (int, string) { // without a terminal
		t.Helper()
		cmd := f.command(t.Context(), built(t), "page")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// atTerminal returns what a person sees.
	atTerminal := func() string {
		t.Helper()
		person, screen := newTerminal(t)
		cmd := f.command(t.Context(), built(t), "page")
		cmd.Stdout = screen
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("codex-mcp page: %v %s", err, &stderr)
		}
		text, in := "", bufio.NewReader(person)
		for !strings.Contains(text, "A link opens its page once") {
			text += must.Get(in.ReadString('\n'))(t)
		}
		return strings.ReplaceAll(text, "\r\n", "\n")
	}
	s.await("a link, which nobody reads", func(m map[string]any) bool {
		return contains(m, map[string]any{"method": "notifications/message", "params": map[string]any{"level": "warning"}}) && goldenLink.MatchString(line(m))
	})
	link, _, _ := strings.Cut(atTerminal(), "\n")
	v := servertest.Visit(t, link)
	v.Events().Question("open")
	if code, out := page(); code != 1 || !strings.Contains(out, errNoTerminal.Error()) || strings.Contains(out, "/#") {
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

	links := regexp.MustCompile(fmt.Sprintf(`^(%s/#\S+)\n  of process %d in %s, open questions 1, since .*\nhttps://approvals.example.com/#(\S+)\n  of process %d in %s, .*\n  on the machine itself (\S+/#(\S+))\n`,
		v.Origin, s.cmd.Process.Pid, f.cwd, asking.cmd.Process.Pid, g.cwd)).FindStringSubmatch(atTerminal())
	if links == nil || links[2] != links[4] {
		t.Fatalf("the links are %q", links)
	}

	for _, link := range []string{links[1], links[3]} {
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
	var stderr bytes.Buffer
	_, screen := newTerminal(t)
	cmd := f.command(t.Context(), built(t), "page")
	cmd.Stdout, cmd.Stderr = screen, &stderr
	if cmd.Run() == nil || !strings.Contains(stderr.String(), errNoPage.Error()) {
		t.Errorf("without a process: %s", &stderr)
	}
}
