package native_test

import (
	"context"
	"errors"
	"slices"
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
				if tt.serverInterrupt && (!as[*engine.AbortError](err) || !errors.Is(err, canceled)) || !tt.serverInterrupt && !as[*engine.TurnError](err) {
					t.Errorf("Turn: %v", err)
				}
				b.absent(t, "made")
				inOrder(t, strings.Join(h.take(), ", "), "agent_message working, token_count, "+tt.want)
				h.on = nil
				turn(t, c, say("more"))
				inOrder(t, lastRequest(b), "make it", "working", `"c1"`, "aborted", "more")
				validRequests(t, b.provider)
			})
		}
	}
}

// TestCutAnswer plays answers that the provider cut off: the result says why, and no call of such an
// answer runs.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	const (
		length = "it reached the model's limit of output tokens"
		window = "it reached the end of the model's context window"
		filter = "the provider's content filter ended it"
	)
	half := providertest.Turn{Text: []string{"one, "}, Cut: "length"}
	call := half
	call.ToolCalls = []providertest.ToolCall{providertest.Shell("c1", "touch", "half-made"), providertest.Shell("c2", "touch", "half-made")}
	full := half
	full.Usage = &providertest.Usage{Input: 3900, Output: 196, Total: 4096}
	for _, tt := range []struct {
		name     string
		limits   native.Limits
		turns    []providertest.Turn
		requests int
		text     string // of the answer
		why      string // it is incomplete
	}{
		{"length", native.Limits{}, []providertest.Turn{half}, 1, "one, ", length},
		{"length without a text", native.Limits{}, []providertest.Turn{{Reasoning: []string{"hm"}, Cut: "length"}}, 1, "null", length},
		{"a filter", native.Limits{}, []providertest.Turn{{Text: []string{"one, "}, Cut: "content_filter"}}, 1, "one, ", filter},
		{"empty", native.Limits{}, []providertest.Turn{{}}, 1, "null", protocol.EmptyAnswer},
		{"reasoning alone", native.Limits{}, []providertest.Turn{{Reasoning: []string{"hm"}}}, 1, "null", protocol.EmptyAnswer},
		{"empty after a call", native.Limits{}, []providertest.Turn{providertest.Call(providertest.Tool("c0", "no_such", nil)), {}}, 2, "null", protocol.EmptyAnswer},
		{"calls", native.Limits{}, []providertest.Turn{call}, 1, "one, ", length},
		{"calls of a filtered answer", native.Limits{}, []providertest.Turn{{ToolCalls: call.ToolCalls, Cut: "content_filter"}}, 1, "null", filter},
		{"full window", native.Limits{}, []providertest.Turn{full}, 1, "one, ", window},
		{"complete, beyond the tokens", native.Limits{Tokens: 5}, []providertest.Turn{providertest.Say("all done")}, 1, "all done", ""},
		{"no tokens left", native.Limits{Tokens: 10}, []providertest.Turn{half}, 1, "one, ", length},
	} {
		for _, wire := range []string{"chat", "responses"} {
			t.Run(tt.name+" "+wire, func(t *testing.T) {
				b := setup(t, "model_context_window = 4096\n---\nwire_api = \""+wire+"\"", tt.limits, slices.Concat(tt.turns, []providertest.Turn{providertest.Say("next")})...)
				h := &host{exec: allow}
				var end protocol.TaskComplete
				h.on = func(m protocol.EventMsg) {
					if m, ok := m.(protocol.TaskComplete); ok {
						end = m
					}
				}
				c := b.start(t, h, protocol.Config{})
				in := say("go")
				in.MaxTokens = tt.limits.Tokens
				turn(t, c, in)
				text := "null"
				if end.LastAgentMessage != nil {
					text = *end.LastAgentMessage
				}
				if text != tt.text || end.Incomplete != tt.why {
					t.Errorf("the answer is %q, incomplete because %q; want %q because %q", text, end.Incomplete, tt.text, tt.why)
				}
				diff(t, "requests", tt.requests, len(b.provider.Requests()))
				without(t, strings.Join(h.take(), "\n"), "exec_")
				validRequests(t, b.provider)
				if tt.name == "full window" {
					return // the next turn begins with a compaction
				}
				if err := c.Turn(t.Context(), say("go on")); err != nil && tt.limits == (native.Limits{}) {
					t.Errorf("the next turn: %v", err)
				}
				for _, r := range b.provider.Requests() {
					without(t, string(r.Body), "half-made")
				}
			})
		}
	}
}
