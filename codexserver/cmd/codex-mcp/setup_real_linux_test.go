//go:build realcodex

package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealSetupKilled kills the program and its Codex while a worktree is set up. Codex has no file of the conversation yet, so the
// next program cannot continue the task. It says so, and nothing runs.
func TestRealSetupKilled(t *testing.T) {
	codex := must.Get(appserver.Find(""))(t)
	f := newFolders(t)
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(providertest.Request) providertest.Turn { return providertest.Say("set up") }})
	t.Cleanup(model.Close)
	for _, args := range []string{"init -q", "commit -q --allow-empty -m first"} {
		servertest.Git(t, f.cwd, strings.Fields(args)...)
	}
	writeConfig(t, f.home, servertest.CodexConfig(model.BaseURL(), "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n"))
	configureSetUp(t, f)
	write(t, filepath.Join(f.cwd, "blocks"), "")
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	begin := func() *mortal { return k.start("--engine", "codex", "--codex", codex) }
	s := begin()
	answer, _ := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":"go","worktree":true},%s`, pollingClient))
	runs := func() int {
		text, _ := os.ReadFile(filepath.Join(f.cwd, "set"))
		return strings.Count(string(text), "\n")
	}
	until(t, "the set-up does not wait", func() bool { return runs() == 1 })
	s.kill()
	s = begin()
	defer s.kill()
	if got := s.told(answer.TaskID); !strings.Contains(got, "The server ended while this task ran") {
		t.Error(got)
	}
	s.end()
	must.Equal(t, "runs of the set-up", 1, runs())
	must.Equal(t, "requests to the model", 0, len(model.Requests()))
}
