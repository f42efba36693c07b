package native_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// full is the answer of a real llama.cpp to a request that does not fit.
var full = providertest.Turn{Status: 400, Body: `{"error":{"code":400,"message":"request (4602 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4602,"n_ctx":4096}}`}

// TestNewMessageStaysWhole sends a message for which the history has no room. The summary
// does not concern the message, which follows it as it is.
func TestNewMessageStaysWhole(t *testing.T) {
	long := "second wish " + strings.Repeat("word ", 1500) + "its end"
	for name, turns := range map[string][]providertest.Turn{
		"the engine counts":   {{Text: []string{"one"}, Usage: &providertest.Usage{Input: 2500, Output: 100, Total: 2600}}, providertest.Say("NOTE"), providertest.Say("two")},
		"the provider counts": {providertest.Say("one"), full, providertest.Say("NOTE"), providertest.Say("two")},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "model_context_window = 4096", native.Limits{}, turns...)
			c := b.start(t, &host{}, protocol.Config{})
			for _, text := range []string{"first wish", long} {
				turn(t, c, say(text))
			}
			all := b.provider.Requests()
			if note := string(all[len(all)-2].Body); strings.Contains(note, "second wish") {
				t.Errorf("the new message is summarised: %s", note)
			}
			got := userMessages(t, all[len(all)-1])
			before, whole := strings.CutSuffix(got[len(got)-1], "\n\n"+long)
			if !whole {
				t.Errorf("the last message does not end in the new one: %s", got[len(got)-1])
			}
			inOrder(t, before, "first wish", "NOTE")
			if strings.Contains(before, "second wish") {
				t.Errorf("the new message is quoted: %s", before)
			}
		})
	}
}

// TestSummaryFitsSmallWindow checks that what a compaction keeps follows from the window.
func TestSummaryFitsSmallWindow(t *testing.T) {
	b := setup(t, "model_context_window = 4096", native.Limits{},
		providertest.Say("one"), providertest.Say("two"),
		providertest.Turn{Text: []string{"three"}, Usage: &providertest.Usage{Input: 3700, Output: 100, Total: 3800}},
		providertest.Say(strings.Repeat("A long note. ", 4000)), providertest.Say("four"))
	c := b.start(t, &host{}, protocol.Config{})
	wish := strings.Repeat("word ", 700)
	for _, text := range []string{"first " + wish, "second " + wish, "third " + wish, "fourth"} {
		turn(t, c, say(text))
	}
	got := userMessages(t, b.provider.Requests()[4])
	bridge := strings.TrimSuffix(got[len(got)-1], "\n\nfourth")
	inOrder(t, bridge, "third", "A long note")
	if most := 4096 * 4 / 2; len(bridge) > most {
		t.Errorf("what replaces the history has %d bytes, want at most %d", len(bridge), most)
	}
}

// TestSummaryOfLongOutput overflows the window with the output of one command, which the
// request for the summary cannot have as a whole either.
func TestSummaryOfLongOutput(t *testing.T) {
	b := setup(t, "model_context_window = 4096", native.Limits{},
		providertest.Call(providertest.Shell("c1", "sh", "-c", "yes output | head -c 9000; echo; echo the end")), full, full,
		providertest.Say("NOTE"), providertest.Say("done"))
	turn(t, b.start(t, &host{exec: allow}, protocol.Config{}), say("the task"))
	all := b.provider.Requests()
	first, second := len(all[2].Body), len(all[3].Body)
	if second >= first {
		t.Errorf("the second request for a summary has %d bytes, the first one %d", second, first)
	}
	inOrder(t, string(all[3].Body), "the task", `"c1"`, "the middle is left out", "the end")
	inOrder(t, lastRequest(b), "the task", "NOTE")
	validRequests(t, b.provider)
}

// TestMessageThatDoesNotFit checks that a message which no request can have ends its turn
// with both figures, and that the conversation continues without it, also after a restart.
func TestMessageThatDoesNotFit(t *testing.T) {
	huge := "the huge message " + strings.Repeat("word ", 8000)
	little := "the long message " + strings.Repeat("word ", 3000)
	for name, tt := range map[string]struct {
		text     string
		first    bool // it is the first message of the conversation
		refusals []providertest.Turn
		want     []string
	}{
		"far longer":               {huge, false, []providertest.Turn{providertest.Say("NOTE")}, []string{"about 1", "window has 4096 tokens"}},
		"far longer, first":        {huge, true, nil, []string{"about 1", "window has 4096 tokens"}},
		"the provider says":        {little, false, []providertest.Turn{providertest.Say("NOTE"), full}, []string{"window has 4096 tokens", "request (4602 tokens)"}},
		"the provider says, first": {little, true, []providertest.Turn{full}, []string{"window has 4096 tokens", "request (4602 tokens)"}},
		"no summary can be had":    {little, false, []providertest.Turn{full, full, full, full, full, full, full, full}, []string{"window has 4096 tokens", "request (4602 tokens)"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "model_context_window = 4096", native.Limits{})
			h := &host{}
			c := b.start(t, h, protocol.Config{})
			if !tt.first {
				b.provider.Add(providertest.Turn{Text: []string{"one"}, Usage: &providertest.Usage{Input: 2500, Output: 100, Total: 2600}})
				turn(t, c, say("first wish"))
			}
			b.provider.Reset(tt.refusals...)
			err := c.Turn(t.Context(), say(tt.text))
			if err == nil {
				t.Fatal("the turn has completed")
			}
			for _, words := range append(tt.want, "continues without it") {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the error lacks %q: %v", words, err)
				}
			}
			path := configured(t, h).RolloutPath
			b.provider.Reset(providertest.Say("two"), providertest.Say("three"))
			turn(t, c, say("second wish"))
			without(t, lastRequest(b), "message word")
			closed(t, c)
			r := b.resume(t, path, protocol.Config{}, &host{})
			defer r.Close()
			turn(t, r, say("third wish"))
			without(t, lastRequest(b), "message word")
			inOrder(t, lastRequest(b), "second wish", "two", "third wish")
		})
	}
}

// without fails the test if a text has a part.
func without(t *testing.T, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%q is in %.2000s", part, text)
	}
}

// TestWithdrawnIsRecorded checks the lines for other readers of the rollout.
func TestWithdrawnIsRecorded(t *testing.T) {
	b := setup(t, "model_context_window = 4096", native.Limits{}, providertest.Say("one"), providertest.Say("NOTE"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	turn(t, c, say("first"))
	if err := c.Turn(t.Context(), say(strings.Repeat("word ", 8000))); err == nil {
		t.Fatal("the turn has completed")
	}
	var event string
	var entry protocol.Compacted
	data, err := os.ReadFile(configured(t, h).RolloutPath)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var l protocol.RolloutLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(line, "thread_rolled_back"):
			event = string(l.Payload)
		case l.Type == protocol.RolloutCompacted:
			if err := json.Unmarshal(l.Payload, &entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	diff(t, "event", `{"type":"thread_rolled_back","num_turns":1}`, event)
	if n := len(entry.ReplacementHistory); n != 2 { // the environment and the summary
		t.Errorf("the history has %d items, want 2", n)
	}
}
