package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTerminalBring has a client's conversation work in a worktree, and brings its work at a terminal.
func TestTerminalBring(t *testing.T) {
	t.Parallel()
	const patch = "*** Begin Patch\n*** Add File: sub/new.txt\n+new\n*** Update File: a\n@@\n-one\n+two\n*** Delete File: b\n*** End Patch\n"
	s := sit(t, providertest.Call(providertest.Tool("c", "apply_patch", map[string]any{"input": patch})), providertest.Say("Done."))
	c := &checkout{t: t, home: s.f.home, dir: must.Get(filepath.EvalSymlinks(s.f.cwd))(t)}
	c.sh(c.dir, "git init -q -b main --template=; echo one >a; echo b >b; git add -A; git commit -q -m first")
	p := start(t, s.f, "--engine", "native")
	p.hello("{}")
	p.call("codex", map[string]any{"prompt": "work", "worktree": true, "approval-policy": "never", "sandbox": "workspace-write"})
	worked, thread := result(p.answer())
	must.Equal(t, "the checkout before", "", c.sh(c.dir, "git status --porcelain"))

	bring := func(question, answer string) string {
		t.Helper()
		d := s.at("", "ask", "--resume", thread, "--bring")
		if question != "" {
			d.answers(question, answer)
		}
		status := 0
		if answer == "n\n" {
			status = 1
		}
		return d.ends(status)
	}
	wait := make(chan struct{})
	s.model.Add(providertest.Turn{Wait: wait, Text: []string{"Nothing to do."}})
	p.call("codex-reply", map[string]any{"prompt": "more", "threadId": thread})
	awaitRequests(t, s.model, 3)
	if screen := bring("", "n\n"); !strings.Contains(screen, "nothing was brought: ") || !strings.Contains(screen, "turn") {
		t.Errorf("the screen while a turn runs:\n%s", screen)
	}
	close(wait)
	p.answer()
	p.stdin.Close()
	<-p.exited
	if screen := bring("Allow codex-mcp to apply proposed code changes?", "n\n"); !strings.Contains(screen, "nothing was brought: it was denied\n") {
		t.Errorf("the screen after n:\n%s", screen)
	}
	must.Equal(t, "the checkout after n", "", c.sh(c.dir, "git status --porcelain"))
	screen := bring("Allow codex-mcp to apply proposed code changes?", "y\n")
	for _, want := range []string{"edit a  +1 -1\n", "delete b  +0 -1\n", "new file sub/new.txt  +1 -0\n  +new\n", "codex-mcp: brought 3 files of codex/", "worktree remove "} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q of the work %v:\n%s", want, worked, screen)
		}
	}
	if strings.Contains(screen, "\x1b") {
		t.Errorf("the screen has escapes: %q", screen)
	}
	must.Equal(t, "the checkout", " M a\n D b\n?? sub/new.txt\n", c.sh(c.dir, "git status --porcelain --untracked-files=all"))
	must.Equal(t, "a", "two\n", string(must.Get(os.ReadFile(filepath.Join(c.dir, "a")))(t)))
	if screen := bring("", ""); !strings.Contains(screen, "there is nothing to bring: ") {
		t.Errorf("the screen after all:\n%s", screen)
	}
	_, remove, _ := strings.Cut(screen, "the worktree: ")
	c.sh(c.dir, strings.ReplaceAll(remove, "\n", " ")) // as it is told
	must.Equal(t, "the branches", "main\n", c.sh(c.dir, "git branch --format='%(refname:short)'"))
	must.Equal(t, "requests", 3, len(s.model.Requests()))
}
