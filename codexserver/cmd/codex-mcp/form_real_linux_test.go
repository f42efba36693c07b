//go:build realcodex

package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealFormKilled kills the program and its Codex while the model is asked for the form of its answer. The next program does not
// do the work again, and the next turn has what the conversation had.
func TestRealFormKilled(t *testing.T) {
	codex := must.Get(appserver.Find(""))(t)
	f, held := newFolders(t), make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		switch {
		case servertest.Holds(r.Body):
			form := providertest.Say(servertest.Formed)
			select {
			case <-held: // the second request
			default:
				close(held)
				form.Wait = make(chan struct{})
			}
			return form
		case len(r.ToolOutputs()) == 0:
			return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo ran >>ran"}))
		}
		return providertest.Say("It is done.")
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, servertest.CodexConfig(model.BaseURL(), "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n"))
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	begin := func() *mortal { return k.start("--engine", "codex", "--codex", codex) }
	s := begin()
	answer, _ := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":"go","output-schema":%s},%s`, servertest.FormSchema, pollingClient))
	<-held
	s.kill()
	s = begin()
	defer s.kill()
	want := `"output":{"zebra":true}`
	if version := must.Get(exec.Command(codex, "--version").Output())(t); strings.Contains(string(version), " 0.154.") {
		want = "The server ended while this task ran" // that version cannot go on with a turn
	}
	if got := s.told(answer.TaskID); !strings.Contains(got, want) {
		t.Error(got)
	}
	thread := threadOf(answer.TaskID)
	next, _ := s.call("tools/call", fmt.Sprintf(`"name":"codex-reply","arguments":{"threadId":%q,"prompt":"on"},%s`, thread, pollingClient))
	if next.TaskID != "" {
		s.told(next.TaskID)
	}
	s.end()
	must.Equal(t, "the work", "ran\n", string(must.Get(os.ReadFile(f.cwd+"/ran"))(t)))
	last := ""
	for line := range strings.Lines(string(must.Get(os.ReadFile(k.rollouts(thread)[0]))(t))) {
		if strings.Contains(line, `"type":"turn_context"`) {
			last = line
		}
	}
	if !strings.Contains(last, `"approval_policy":"on-request"`) || !strings.Contains(last, `"sandbox_policy":{"type":"workspace-write"`) {
		t.Errorf("the next turn had %s", last)
	}
}
