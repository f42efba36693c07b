//go:build realcodex

package appserver_test

import (
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRealRollout checks what the real Codex writes to a rollout: the messages, of which a
// transcript after a restart is made.
func TestRealRollout(t *testing.T) {
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"",
		providertest.Say("hello"), escalated("e1"),
		providertest.Call(providertest.Tool("e2", "exec_command", map[string]any{"cmd": "rm -rf /nonexistent"})),
		providertest.Call(providertest.Tool("e3", "exec_command", map[string]any{"cmd": "touch made"})),
		providertest.Say("again"))
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	for _, words := range []string{"one", "two"} {
		if err := conv.Turn(t.Context(), text(words)); err != nil {
			t.Fatal(err)
		}
	}
	path := ""
	for _, m := range h.events {
		if m, ok := m.(protocol.SessionConfigured); ok {
			path = m.RolloutPath
		}
	}
	r.restart(t)
	tr, err := transcript.ReadRollout(t.Context(), path, conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	page, err := tr.Transcript(0, 1<<20)
	want := "user:\n  one\ncodex:\n  hello\nuser:\n  two\ncommand: touch made.txt && echo made\ncommand: rm -rf /nonexistent\ncommand: touch made\ncodex:\n  again\n"
	if d := cmp.Diff(want, page.Text); d != "" || err != nil {
		t.Errorf("%v: transcript (-want +got)\n%s", err, d)
	}
	h = &recorder{}
	if _, err := r.engine.Resume(t.Context(), savedAt(path), protocol.Config{Cwd: r.cwd}, h); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, raw := range h.events[0].(protocol.SessionConfigured).InitialMessages {
		switch m, _ := protocol.ParseEvent(raw); m := m.(type) {
		case protocol.UserMessage:
			said = append(said, m.Message)
		case protocol.AgentMessage:
			said = append(said, m.Message)
		}
	}
	if d := cmp.Diff([]string{"one", "hello", "two", "again"}, said); d != "" {
		t.Errorf("messages of the resumed conversation in %s (-want +got)\n%s", filepath.Base(path), d)
	}
}
