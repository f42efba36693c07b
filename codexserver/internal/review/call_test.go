package review_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestOtherEngine reviews with an engine that has no reviewer of its own and asks for approval
// of everything. Nothing is approved, and no client is asked.
func TestOtherEngine(t *testing.T) {
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			s := newShop(t)
			c := connect(t, engine.TurnFunc(func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
				if !strings.Contains(protocol.TextOf(in), "+func last(n int) int { return n }") {
					t.Errorf("the model does not see the change: %s", protocol.TextOf(in))
				}
				h.Emit(protocol.AgentMessage{Message: s.answer()})
				for _, out := range []string{
					h.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"rm", "x"}, Cwd: s.repo}).ForModel(),
					h.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "2", Changes: map[string]protocol.FileChange{"x": {Add: &protocol.FileContent{}}}, Cwd: s.repo}).ForModel(),
				} {
					if !strings.Contains(out, "this is a review") {
						t.Errorf("approved, or denied by another decider: %s", out)
					}
				}
				if _, err := h.Elicit(ctx, new(elicit.Foreign)); err == nil {
					t.Error("a form was sent")
				}
				return nil
			}), modern)
			r, failed := c.call("codex-review", map[string]any{"target": "base", "branch": "main", "cwd": s.repo})
			if failed || len(r.Findings) != 5 || len(r.Refused) != 2 || r.Verdict == nil {
				t.Errorf("%+v", r)
			}
			again, failed := c.call("codex-review", map[string]any{"target": "uncommitted", "threadId": r.ThreadID})
			if !failed || !strings.Contains(again.Content, "argument /threadId: this engine reviews in new conversations alone") {
				t.Errorf("%+v", again)
			}
		})
	}
}

// TestBackground begins a review in the background, waits for it, and stops another.
func TestBackground(t *testing.T) {
	s := newShop(t)
	stall := make(chan struct{})
	defer close(stall)
	model := providertest.New(providertest.Say(s.answer()), providertest.Turn{Text: []string{"thinking"}, Stall: stall})
	c := connect(t, newNative(t, model, nil), true)
	arguments := map[string]any{"target": "uncommitted", "cwd": s.repo, "background": true}
	begin := func() string {
		t.Helper()
		r, failed := c.call("codex-review", arguments)
		if failed || r.Status != "running" || r.ThreadID == "" {
			t.Fatalf("%+v", r)
		}
		return r.ThreadID
	}
	wait := func(id, status string, findings int) {
		t.Helper()
		r, _ := c.call("codex-wait", map[string]any{"threadIds": []string{id}})
		if len(r.Threads) != 1 || r.Threads[0].Status != status || len(r.Threads[0].Findings) != findings {
			t.Errorf("%+v", r)
		}
	}
	wait(begin(), "completed", 5)
	id := begin()
	if err := model.Await(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if r, failed := c.call("codex-interrupt", map[string]any{"threadId": id}); failed {
		t.Errorf("%+v", r)
	}
	wait(id, "aborted", 0)
}

// TestTask runs a long review as a task.
func TestTask(t *testing.T) {
	s := newShop(t)
	stall := make(chan struct{})
	c := connect(t, newNative(t, providertest.New(providertest.Turn{Text: []string{"thinking"}, Stall: stall}), nil), true)
	defer close(stall)
	params := fmt.Sprintf(`{"name":"codex-review","arguments":{"target":"uncommitted","cwd":%q},"_meta":%s}`,
		s.repo, servertest.Capable(`"extensions":{"io.modelcontextprotocol/tasks":{}}`))
	if got := c.Ask(t, "tools/call", params); !strings.Contains(got, `"taskId"`) {
		t.Error(got)
	}
}
