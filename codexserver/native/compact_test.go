package native_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

var filling = &providertest.Usage{Input: 900, Output: 100, Total: 1000}

func TestCompaction(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		b := setup(t, "model_auto_compact_token_limit = 1000\ncompact_prompt = \" \"\n---\nwire_api = \""+wire+"\"", native.Limits{},
			providertest.Turn{Usage: filling, ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "echo", "one")}},
			providertest.Say("THE NOTE"),
			providertest.Say("after"),
			providertest.Turn{Usage: filling, Text: []string{"full again"}},
			providertest.Say("SECOND NOTE"),
			providertest.Say("end"))
		says(t, b.start(t, &host{}, protocol.Config{}), "first wish", "second wish", "third wish")
		all := b.provider.Requests()
		if len(all) != 6 {
			t.Fatalf("%d requests, want 6", len(all))
		}
		for _, part := range []string{`"name":"shell","description"`, `"tool_choice":"none"`, `"c1"`} { // some providers refuse calls without tools
			if note := string(all[1].Body); !strings.Contains(note, part) {
				t.Errorf("the summary's request lacks %s: %s", part, note)
			}
		}
		after := string(all[2].Body)
		inOrder(t, after, "<environment_context>", "first wish", "THE NOTE")
		without(t, after, `"c1"`)
		inOrder(t, all[1].LastUserText(), "grown too long") // the own prompt, because the configured one is blank
		inOrder(t, string(all[5].Body), "first wish", "second wish", "SECOND NOTE", "third wish")
		validRequests(t, b.provider)
	})
}

// TestBadSummaries has answers that are no summary: they are asked for once more and never kept, and no call of them runs. The
// conversation goes on with its history if there is none.
func TestBadSummaries(t *testing.T) {
	call := providertest.Call(providertest.Shell("c2", "touch", "made"))
	for name, bad := range map[string]providertest.Turn{
		"a thought without an end": {Text: []string{"<think>\nsecret plan"}, Cut: "length"},
		"a thought that goes on":   providertest.Say("<think>done</think>\n<think>secret plan"),
		"a call":                   call,
		"a call beside a text":     {Text: []string{"secret plan"}, ToolCalls: call.ToolCalls},
		"a call in text":           providertest.Say("secret plan\n<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": [\"touch\", \"made\"]}}\n</tool_call>"),
		"nothing":                  {},
		"a blank":                  providertest.Say(" \n"),
		"a thought and nothing":    providertest.Say("<think>secret plan</think>\n"),
		"reasoning and no text":    {Reasoning: []string{"secret plan"}},
	} {
		bad.Usage = filling // as of a request with a long history
		t.Run(name, func(t *testing.T) {
			onEachWire(t, func(t *testing.T, wire string) {
				full := providertest.Turn{Usage: filling, Text: []string{"one"}}
				b := setup(t, "model_auto_compact_token_limit = 1000\n---\nwire_api = \""+wire+"\"", native.Limits{}, full, bad, providertest.Say("NOTE"), providertest.Say("two"))
				c := b.start(t, &host{exec: allow}, protocol.Config{})
				says(t, c, "first", "second")
				all := b.provider.Requests()
				if len(all) != 4 {
					t.Fatalf("%d requests, want 4", len(all))
				}
				inOrder(t, string(all[2].Body), "first", "grown too long", "was no summary")
				inOrder(t, lastRequest(b), "NOTE", "second")
				without(t, lastRequest(b), "secret plan")
				b.absent(t, "made")
				closed(t, c)

				b = setup(t, "model_auto_compact_token_limit = 1000\n---\nwire_api = \""+wire+"\"", native.Limits{}, full, bad, bad, providertest.Say("NOTE"), providertest.Say("two"))
				c = b.start(t, &host{exec: allow}, protocol.Config{})
				says(t, c, "first")
				if err := c.Turn(t.Context(), say("second")); err == nil || !strings.Contains(err.Error(), "no summary, also when it was asked again") {
					t.Errorf("Turn: %v", err)
				}
				says(t, c, "third")
				inOrder(t, lastRequest(b), "first", "NOTE", "third")
				without(t, lastRequest(b), "secret plan")
				b.absent(t, "made")
			})
		})
	}
}

func TestCompactionThatDoesNotHelp(t *testing.T) {
	call := providertest.Turn{Usage: filling, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "x")}}
	b := setup(t, "model_auto_compact_token_limit = 1000", native.Limits{}, call, providertest.Say("note"), call)
	err := b.start(t, &host{}, protocol.Config{}).Turn(t.Context(), say("go"))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 tokens") {
		t.Errorf("Turn: %v, want the limit", err)
	}
}

// full is the answer of a real llama.cpp to a request that does not fit.
var full = providertest.Turn{Status: 400, Body: `{"error":{"code":400,"message":"request (4602 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4602,"n_ctx":4096}}`}

// TestSummaryFitsSmallWindow checks that what a compaction keeps follows from the window.
func TestSummaryFitsSmallWindow(t *testing.T) {
	b := setup(t, "model_context_window = 4096", native.Limits{},
		providertest.Say("one"), providertest.Say("two"),
		providertest.Turn{Text: []string{"three"}, Usage: &providertest.Usage{Input: 3700, Output: 100, Total: 3800}},
		providertest.Say(strings.Repeat("A long note. ", 4000)), providertest.Say("four"))
	c := b.start(t, &host{}, protocol.Config{})
	wish := strings.Repeat("word ", 700)
	says(t, c, "first "+wish, "second "+wish, "third "+wish, "fourth")
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
	task := say("the task")
	task.Items = append(task.Items, protocol.InputItem{Type: protocol.InputImage, ImageURL: "data:image/png;base64,iVBORw0KGgo="})
	turn(t, b.start(t, &host{exec: allow}, protocol.Config{}), task)
	all := b.provider.Requests()
	first, second := len(all[2].Body), len(all[3].Body)
	if second >= first {
		t.Errorf("the second request for a summary has %d bytes, the first one %d", second, first)
	}
	inOrder(t, string(all[3].Body), "the task", "[image left out]", `"c1"`, "the middle is left out", "the end")
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
				inOrder(t, err.Error(), words)
			}
			path := configured(t, h).RolloutPath
			lines := read(t, path) // what other readers of the rollout go by
			inOrder(t, lines, `{"type":"thread_rolled_back","num_turns":1}`)
			if strings.Contains(fmt.Sprint(tt.refusals), "NOTE") {
				last := lines[max(strings.LastIndex(lines, `"type":"compacted"`), 0):]
				last, _, _ = strings.Cut(last, "\n")
				must.Equal(t, "items of the new history: the environment and the summary", 2, strings.Count(last, `"type":"message"`))
			}
			b.provider.Reset(providertest.Say("two"), providertest.Say("three"))
			turn(t, c, say("second wish"))
			without(t, lastRequest(b), "message word")
			closed(t, c)
			r := b.resume(t, path, protocol.Config{}, &host{})
			says(t, r, "third wish")
			without(t, lastRequest(b), "message word")
			inOrder(t, lastRequest(b), "second wish", "two", "third wish")
		})
	}
}

func without(t *testing.T, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%q is in %.2000s", part, text)
	}
}

// TestWindowOfTheServer uses a server that states a context window of 4,096 tokens, which nothing configures. A message
// that does not fit any more is counted before it is sent: the history is summarised first.
func TestWindowOfTheServer(t *testing.T) {
	asked := 0
	var script *providertest.Server
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked++
			_, _ = io.WriteString(w, `{"data":[{"id":"tiny.gguf","meta":{"n_ctx":4096,"n_ctx_train":32768}}]}`)
			return
		}
		script.ServeHTTP(w, r)
	}))
	defer front.Close()
	b := setup(t, fmt.Sprintf("---\n[model_providers.front]\nbase_url = %q\n", front.URL+"/v1"), native.Limits{},
		providertest.Turn{Text: []string{"one"}, Usage: &providertest.Usage{Input: 2000, Output: 100, Total: 2100}},
		providertest.Say("THE NOTE"), providertest.Say("two"))
	script = b.provider
	h := &host{}
	c := b.start(t, h, protocol.Config{Overrides: protocol.Overrides{"model_provider": "front"}})
	says(t, c, "first wish", "second wish "+strings.Repeat("word ", 1500))
	all := b.provider.Requests()
	if len(all) != 3 || asked != 1 {
		t.Fatalf("%d requests, want 3; the list of models was read %d times, want once", len(all), asked)
	}
	without(t, string(all[1].Body), "second wish") // the summary's request
	inOrder(t, string(all[2].Body), "first wish", "THE NOTE", "second wish")
	inOrder(t, strings.Join(h.take(), "\n"), "agent_message The conversation was summarised")
}

// TestCommandsBeyondTheTokens has a response that uses the last tokens and calls for a command: the command does not
// run, and the conversation continues with the response in its history.
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

// TestCutAnswer plays answers that the provider cut off: the result says why, and no call of such an answer runs.
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
				must.Equal(t, "requests", tt.requests, len(b.provider.Requests()))
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
