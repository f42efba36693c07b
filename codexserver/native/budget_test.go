package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestCommandsBeyondTheTokens has a response that uses the last tokens and calls for a
// command: the command does not run, and the conversation continues with the response in
// its history.
func TestCommandsBeyondTheTokens(t *testing.T) {
	canceled := errors.New("the budget was reached")
	for _, tt := range []struct {
		name            string
		limits          native.Limits
		budget          int64
		usage           providertest.Usage
		serverInterrupt bool
		want            string // the last events
	}{
		{"limit", native.Limits{Tokens: 50}, 0, providertest.Usage{Total: 60}, false, "error the turn was stopped: it used 60 of 50 tokens, task_complete null"},
		{"budget", native.Limits{}, 50, providertest.Usage{Total: 60}, false, "error the turn was stopped: it used 60 of 50 tokens, task_complete null"},
		{"a usage without a total", native.Limits{}, 50, providertest.Usage{Input: 40, Output: 20}, false, "error the turn was stopped: it used 60 of 50 tokens, task_complete null"},
		{"a server that interrupts", native.Limits{}, 50, providertest.Usage{Total: 60}, true, "turn_aborted interrupted"},
	} {
		for _, wire := range []string{"chat", "responses"} {
			t.Run(tt.name+" "+wire, func(t *testing.T) {
				b := setup(t, "---\nwire_api = \""+wire+"\"", tt.limits, providertest.Turn{
					Text: []string{"working"}, ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "touch", "made")}, Usage: &tt.usage,
				}, providertest.Say("next"))
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				h := &host{exec: allow}
				h.on = func(m protocol.EventMsg) {
					count, ok := m.(protocol.TokenCount)
					if ok && count.Info != nil && tt.serverInterrupt {
						cancel(canceled)
					}
				}
				c := b.start(t, h, protocol.Config{})
				in := say("make it")
				in.MaxTokens = tt.budget
				err := c.Turn(ctx, in)
				var abort *engine.AbortError
				var failed *engine.TurnError
				if tt.serverInterrupt && (!errors.As(err, &abort) || !errors.Is(err, canceled)) || !tt.serverInterrupt && !errors.As(err, &failed) {
					t.Errorf("Turn: %v", err)
				}
				if _, err := os.Stat(filepath.Join(b.cwd, "made")); err == nil {
					t.Error("the command ran")
				}
				inOrder(t, strings.Join(h.take(), ", "), "agent_message working, token_count, "+tt.want)
				h.on = nil
				turn(t, c, say("more"))
				inOrder(t, lastRequest(b), "make it", "working", `"c1"`, "aborted", "more")
				validRequests(t, b.provider)
			})
		}
	}
}

// TestAnswerBeyondTheTokens has a last answer that goes beyond the budget: the turn is
// complete.
func TestAnswerBeyondTheTokens(t *testing.T) {
	b := setup(t, "", native.Limits{Tokens: 5}, providertest.Say("all done"))
	in := say("go")
	in.MaxTokens = 5
	h := &host{}
	turn(t, b.start(t, h, protocol.Config{}), in)
	events := h.take()
	diff(t, "last event", "task_complete all done", events[len(events)-1])
}
