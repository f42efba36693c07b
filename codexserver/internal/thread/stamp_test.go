package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

type toolEvent struct {
	Meta struct{ ThreadID string } `json:"_meta"`
	Msg  struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
		TurnID    string `json:"turn_id"`
	} `json:"msg"`
}

// TestMembersOf2026 checks that events and questions have their types and members of 2025,
// and the ids that Codex added later.
func TestMembersOf2026(t *testing.T) {
	everything := engine.TurnFunc(func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		for _, m := range []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"},
			protocol.PatchApplyBegin{CallID: "c"}, protocol.PatchApplyEnd{CallID: "c"},
			protocol.AgentMessage{Message: "m"}, protocol.TurnDiff{}, protocol.TokenCount{},
		} {
			h.Emit(m)
		}
		h.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"ls"}, Cwd: "/"})
		h.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "c"})
		h.Approve(ctx, &elicit.Question{Message: "Sure?"})
		return nil
	})
	withTurn := []string{
		"apply_patch_approval_request", "exec_approval_request", "exec_command_begin", "exec_command_end",
		"patch_apply_begin", "patch_apply_end", "task_complete", "task_started",
	}
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(everything, nil), servertest.Say(servertest.Decline))
		c.Ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}`)
		thread := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`))
		c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"prompt":"p","threadId":%q}}`, thread))
		synctest.Wait() // the events are handled apart from the answer
		var events []toolEvent
		for _, params := range c.Received("codex/event") {
			var e toolEvent
			if err := json.Unmarshal(params, &e); err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		var questions []string
		for _, params := range c.Received("elicitation/create") {
			var q struct{ ThreadID string }
			if err := json.Unmarshal(params, &q); err != nil {
				t.Fatal(err)
			}
			questions = append(questions, q.ThreadID)
		}

		turns := map[string]bool{}
		var have []string
		for _, e := range events {
			if e.Meta.ThreadID != thread {
				t.Errorf("%s has the thread %q, want %q", e.Msg.Type, e.Meta.ThreadID, thread)
			}
			if e.Msg.Type == "session_configured" && (e.Msg.ThreadID != thread || e.Msg.SessionID != thread) {
				t.Errorf("session_configured: %+v", e.Msg)
			}
			if e.Msg.TurnID != "" {
				turns[e.Msg.TurnID] = true
				have = append(have, e.Msg.Type)
			}
		}
		slices.Sort(have)
		if len(turns) != 2 || len(have) != 2*len(withTurn) {
			t.Errorf("%d events of two turns have %d ids", len(have), len(turns))
		}
		if got := slices.Compact(have); !slices.Equal(got, withTurn) {
			t.Errorf("turn_id stands in %q, want %q", got, withTurn)
		}
		if want := slices.Repeat([]string{thread}, 6); !slices.Equal(questions, want) {
			t.Errorf("the questions' threads are %q, want %q", questions, want)
		}
	})
}
