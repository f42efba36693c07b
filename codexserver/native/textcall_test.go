package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestCallInText tells the model once how to call, and never runs the text.
func TestCallInText(t *testing.T) {
	const call = "I will look.\n<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": [\"touch\", \"made\"]}}\n</tool_call>"
	const incomplete = "the model called shell in its text, where its server did not read it, so that was not run: start that server"
	for _, tt := range []struct {
		name          string
		turns         []providertest.Turn
		requests      int
		answer, lacks string
		told          bool
		ran, thought  bool
	}{
		{name: "then a call", turns: []providertest.Turn{providertest.Say(call), providertest.Call(providertest.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":["touch","ran"]}`}), providertest.Say("FIN")}, requests: 3, answer: "FIN", told: true, ran: true},
		{name: "then an answer", turns: []providertest.Turn{providertest.Say(call), providertest.Say("FIN")}, requests: 2, answer: "FIN", lacks: incomplete, told: true},
		{name: "again", turns: []providertest.Turn{providertest.Say(call), providertest.Say(call)}, requests: 2, answer: call, lacks: incomplete, told: true},
		{name: "within thinking", turns: []providertest.Turn{providertest.Say("<think>" + call + "</think>\nFIN")}, requests: 1, answer: "FIN", thought: true},
		{name: "an example", turns: []providertest.Turn{providertest.Say("Like this:\n```\n" + call + "\n```")}, requests: 1, answer: "Like this:\n```\n" + call + "\n```"},
		{name: "thinking alone", turns: []providertest.Turn{providertest.Say("<think>secret</think>")}, requests: 1, lacks: protocol.EmptyAnswer, thought: true},
	} {
		for _, wire := range []string{"chat", "responses"} {
			t.Run(tt.name+", "+wire, func(t *testing.T) {
				b := setup(t, "---\nwire_api = \""+wire+"\"\n", native.Limits{}, tt.turns...)
				b.engine = open(t, native.Options{CodexHome: b.home, Tools: "files", Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + b.home}})
				h := &host{exec: allow}
				turn(t, b.start(t, h, protocol.Config{}), say("go"))
				end, _ := h.events[len(h.events)-1].(protocol.TaskComplete)
				answer := ""
				if end.LastAgentMessage != nil {
					answer = *end.LastAgentMessage
				}
				must.Equal(t, "answer", tt.answer, answer)
				if !strings.HasPrefix(end.Incomplete, tt.lacks) || (end.Incomplete == "") != (tt.lacks == "") {
					t.Errorf("incomplete: %q, want %q", end.Incomplete, tt.lacks)
				}
				must.Equal(t, "requests", tt.requests, len(b.provider.Requests()))
				if told := strings.Contains(lastRequest(b), "tool_call_in_text"); told != tt.told {
					t.Errorf("told %t, want %t", told, tt.told)
				}
				made, _ := filepath.Glob(filepath.Join(b.cwd, "*"))
				if ran := len(made) == 1 && filepath.Base(made[0]) == "ran"; ran != tt.ran || len(made) > 1 {
					t.Errorf("it made %q", made)
				}
				for _, m := range h.events {
					if said, ok := m.(protocol.AgentMessage); ok && tt.thought && strings.Contains(said.Message, "think") {
						t.Errorf("the message %q", said.Message)
					}
				}
			})
		}
	}
}
