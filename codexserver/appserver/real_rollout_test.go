//go:build realcodex

package appserver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestRealRollout checks what the real Codex writes to a rollout: the messages, of which a
// transcript after a restart is made. Another process lists and continues the conversation.
func TestRealRollout(t *testing.T) {
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"",
		providertest.Say("hello"), escalated("e1"),
		providertest.Call(providertest.Tool("e2", "exec_command", map[string]any{"cmd": "rm -rf /nonexistent"})),
		providertest.Call(providertest.Tool("e3", "exec_command", map[string]any{"cmd": "touch made"})),
		providertest.Say("again"), providertest.Say("three"))
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
	again := r.resume(t, conv, h, protocol.Config{Cwd: r.cwd})
	resumed := h.all()[0].(protocol.SessionConfigured)
	var said []string
	for _, raw := range resumed.InitialMessages {
		switch m, _ := protocol.ParseEvent(raw); m := m.(type) {
		case protocol.UserMessage:
			said = append(said, m.Message)
		case protocol.AgentMessage:
			said = append(said, m.Message)
		}
	}
	if d := cmp.Diff([]string{"one", "hello", "two", "again"}, said); d != "" || resumed.RolloutPath != path {
		t.Errorf("messages of the resumed conversation in %s, %s (-want +got)\n%s", path, resumed.RolloutPath, d)
	}
	if err := again.Turn(t.Context(), text("third")); err != nil || h.answer() != "three" || again.ID() != conv.ID() || !strings.Contains(r.last(), "hello") {
		t.Errorf("%v, %q, %s, the model was told %s", err, h.answer(), again.ID(), r.last())
	}
	list, err := r.engine.List(t.Context(), protocol.ListConversationsParams{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ConversationID != conv.ID() || list.Items[0].Preview != "one" || list.Items[0].Cwd == "" {
		t.Errorf("list: %v, %+v", err, list)
	}
	if _, err := r.engine.List(t.Context(), protocol.ListConversationsParams{Cursor: "bogus"}); !errors.Is(err, engine.ErrCursor) {
		t.Errorf("a bad cursor: %v", err)
	}
	if _, err := r.engine.Find(t.Context(), threadID); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}
