package native_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

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
				turn(t, c, say("go"))
				text := "null"
				if end.LastAgentMessage != nil {
					text = *end.LastAgentMessage
				}
				if text != tt.text || end.Incomplete != tt.why {
					t.Errorf("the answer is %q, incomplete because %q; want %q because %q", text, end.Incomplete, tt.text, tt.why)
				}
				if n := len(b.provider.Requests()); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				for _, e := range h.take() {
					if strings.HasPrefix(e, "exec_") {
						t.Errorf("a call of the cut answer ran: %s", e)
					}
				}
				validRequests(t, b.provider)
				if tt.name == "full window" {
					return // the next turn begins with a compaction
				}
				if err := c.Turn(t.Context(), say("go on")); err != nil && tt.limits == (native.Limits{}) {
					t.Errorf("the next turn: %v", err)
				}
				for _, r := range b.provider.Requests() {
					if strings.Contains(string(r.Body), "half-made") {
						t.Error("half a call is in the history")
					}
				}
			})
		}
	}
}
