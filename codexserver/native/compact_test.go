package native_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var filling = &providertest.Usage{Input: 900, Output: 100, Total: 1000}

func TestCompaction(t *testing.T) {
	for _, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "model_auto_compact_token_limit = 1000\n---\nwire_api = \""+wire+"\"", native.Limits{},
				providertest.Turn{Usage: filling, ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "echo", "one")}},
				providertest.Say("THE NOTE"),
				providertest.Say("after"),
				providertest.Turn{Usage: filling, Text: []string{"full again"}},
				providertest.Say("SECOND NOTE"),
				providertest.Say("end"))
			h := &host{}
			c := b.start(t, h, protocol.Config{})
			for _, text := range []string{"first wish", "second wish", "third wish"} {
				turn(t, c, say(text))
			}
			all := b.provider.Requests()
			if len(all) != 6 {
				t.Fatalf("%d requests, want 6", len(all))
			}
			if note := string(all[1].Body); strings.Contains(note, `"name":"shell","description"`) || !strings.Contains(note, `"c1"`) {
				t.Errorf("the summary's request has tools or lacks the history: %s", note)
			}
			after := string(all[2].Body)
			inOrder(t, after, "<environment_context>", "first wish", "THE NOTE")
			if strings.Contains(after, `"c1"`) {
				t.Errorf("the old history is still there: %s", after)
			}
			inOrder(t, string(all[5].Body), "first wish", "second wish", "SECOND NOTE", "third wish")

			// A resumed conversation has the same history.
			path := configured(t, h).RolloutPath
			closed(t, c)
			b.provider.Add(providertest.Say("resumed"))
			r := b.resume(t, path, protocol.Config{}, &host{})
			defer r.Close()
			turn(t, r, say("fourth wish"))
			inOrder(t, lastRequest(b), "SECOND NOTE", "third wish", "end", "fourth wish")
			validRequests(t, b.provider)
		})
	}
}

func TestCompactionThatDoesNotHelp(t *testing.T) {
	call := providertest.Turn{Usage: filling, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "x")}}
	b := setup(t, "model_auto_compact_token_limit = 1000", native.Limits{}, call, providertest.Say("note"), call)
	h := &host{}
	err := b.start(t, h, protocol.Config{}).Turn(t.Context(), say("go"))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 tokens") {
		t.Errorf("Turn: %v, want the limit", err)
	}
}

func TestCompactionAfterAnErrorOfTheProvider(t *testing.T) {
	tooLong := providertest.Turn{Status: 400, Body: `{"error":{"code":"context_length_exceeded","message":"too long"}}`}
	b := setup(t, "", native.Limits{}, providertest.Say("one"), tooLong, tooLong, providertest.Say("NOTE"), providertest.Say("two"))
	c := b.start(t, &host{}, protocol.Config{})
	for _, text := range []string{"first", "second"} {
		turn(t, c, say(text))
	}
	inOrder(t, lastRequest(b), "first", "NOTE", "second")
}

func TestCompactionReportsRateLimits(t *testing.T) {
	b := setup(t, "model_context_window = 2000", native.Limits{},
		providertest.Turn{Text: []string{"a"}, Usage: &providertest.Usage{Input: 1880, Output: 20, Total: 1900}}, providertest.Say("NOTE"), providertest.Say("b"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	for _, text := range []string{"first", "second"} {
		turn(t, c, say(text))
	}
	if events := h.take(); !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "agent_message The conversation was summarised") }) {
		t.Errorf("events %q", events)
	}
}
