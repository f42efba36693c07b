package native_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func TestModelsThatMisbehave(t *testing.T) {
	calls := func(n int) providertest.Turn {
		var turn providertest.Turn
		for i := range n {
			turn.ToolCalls = append(turn.ToolCalls, providertest.Shell(fmt.Sprintf("c%d", i), "touch", "made"))
		}
		return turn
	}
	endless := strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"more and more \"}}]}\n\n", 1<<12)
	for _, tt := range []struct {
		name   string
		limits native.Limits
		turns  []providertest.Turn
		want   string // the error's message, "" for none
	}{
		{"endless text", native.Limits{ResponseBytes: 64 << 10}, []providertest.Turn{{Body: endless}}, "the response has more than 65536 bytes"},
		{"endless line", native.Limits{ResponseBytes: 64 << 10}, []providertest.Turn{{Body: "data: " + strings.Repeat("x", 1<<20)}}, "the response has more than 65536 bytes"},
		{"a thousand calls at once", native.Limits{}, []providertest.Turn{calls(1000)}, "more than 128 tool calls"},
		{"a call after each call", native.Limits{ModelRequests: 5}, []providertest.Turn{
			{Repeat: true, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "again")}}}, "more than 5 requests"},
		{"too many tokens", native.Limits{Tokens: 100}, []providertest.Turn{
			{Repeat: true, Usage: &providertest.Usage{Total: 60}, ToolCalls: []providertest.ToolCall{providertest.Shell("", "echo", "again")}}},
			"120 of 100 tokens"},
		{"unknown tool", native.Limits{}, []providertest.Turn{providertest.Call(providertest.Tool("", "no_such", nil)), providertest.Say("ok")}, ""},
		{"half arguments", native.Limits{}, []providertest.Turn{
			providertest.Call(providertest.ToolCall{Name: "shell", Arguments: `{"command":["touch","ma`}), providertest.Say("ok")}, ""},
		{"arguments of another type", native.Limits{}, []providertest.Turn{
			providertest.Call(providertest.ToolCall{Name: "shell", Arguments: `{"command":"touch made"}`}), providertest.Say("ok")}, ""},
		{"no arguments", native.Limits{}, []providertest.Turn{
			providertest.Call(providertest.ToolCall{Name: "shell"}), providertest.Say("ok")}, ""},
		{"empty command", native.Limits{}, []providertest.Turn{
			providertest.Call(providertest.ToolCall{Name: "shell", Arguments: `{"command":[]}`}), providertest.Say("ok")}, ""},
		{"no name", native.Limits{}, []providertest.Turn{providertest.Call(providertest.ToolCall{Arguments: `{}`}), providertest.Say("ok")}, ""},
		{"empty response", native.Limits{}, []providertest.Turn{{}}, ""},
		{"error in the stream", native.Limits{}, []providertest.Turn{{Body: "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"}}, "overloaded"},
		{"not UTF-8", native.Limits{}, []providertest.Turn{{Body: "data: {\"choices\":[{\"delta\":{\"content\":\"a\xffb\"},\"finish_reason\":\"stop\"}]}\n\n"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "", tt.limits, tt.turns...)
			h := &host{} // refuses every command
			err := b.start(t, h, protocol.Config{}).Turn(t.Context(), say("go"))
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			var failed *engine.TurnError
			if tt.want != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Message, tt.want)) {
				t.Fatalf("Turn: %v, want %q", err, tt.want)
			}
			if !strings.HasPrefix(h.last(), "task_complete") {
				t.Errorf("the turn ends with %q", h.last())
			}
			b.absent(t, "made")
			validRequests(t, b.provider)
		})
	}
}

func TestWallTime(t *testing.T) {
	b := setup(t, "", native.Limits{WallTime: 100 * time.Millisecond}, providertest.Turn{Wait: make(chan struct{})})
	h := &host{}
	err := b.start(t, h, protocol.Config{}).Turn(t.Context(), say("go"))
	var failed *engine.TurnError
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, "longer than 100ms") {
		t.Errorf("Turn: %v, want the limit", err)
	}
}

// TestCutStream cuts the connection in a response with a call, at each byte around the ends of its
// lines and in between at every seventh: the engine requests it again, and runs the call once.
// Unless whole, each place is cut on one of the two wires.
func TestCutStream(t *testing.T) {
	t.Parallel()
	for n, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "include_plan_tool = true\n---\nwire_api = \""+wire+"\"", native.Limits{})
			call := providertest.Turn{Text: []string{"hm"}, ToolCalls: []providertest.ToolCall{
				providertest.Tool("c1", "update_plan", map[string]any{"plan": []any{map[string]string{"step": "s", "status": "pending"}}}),
			}}
			retrying := protocol.Config{BaseInstructions: new(""), Overrides: rawConfig("model_providers.test.stream_max_retries", "3")}
			stream := streamOf(wire, call)
			var mu sync.Mutex
			seen := map[string]bool{}
			b.provider.Add(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				if len(r.ToolOutputs()) > 0 {
					return providertest.Say("done")
				}
				mu.Lock()
				defer mu.Unlock()
				mark := r.LastUserText()
				if seen[mark] {
					return call
				}
				seen[mark] = true
				broken := call
				broken.TruncateAt, _ = strconv.Atoi(mark) // the mark is the number
				return broken
			}})
			var all sync.WaitGroup
			slots := make(chan struct{}, 100) // the waits before the second attempts overlap
			for cut := 1; cut <= len(stream); cut++ {
				if !servertest.Plays(cut+n, *whole) || cut%7 != 0 && !strings.Contains(stream[max(cut-3, 0):min(cut+3, len(stream))], "\n") {
					continue
				}
				mark := strconv.Itoa(cut)
				slots <- struct{}{}
				all.Go(func() {
					defer func() { <-slots }()
					h := &host{}
					if err := b.start(t, h, retrying).Turn(t.Context(), say(mark)); err != nil {
						t.Errorf("cut at %s: %v", mark, err)
					}
					diff(t, "calls after the cut at "+mark, 1, strings.Count(strings.Join(h.take(), "\n"), "plan_update"))
				})
			}
			all.Wait()
			validRequests(t, b.provider)
		})
	}
}

// streamOf returns the bytes of a turn on a wire.
func streamOf(wire string, turn providertest.Turn) string {
	p := providertest.New(turn)
	defer p.Close()
	path := map[string]string{"chat": "/v1/chat/completions", "responses": "/v1/responses"}[wire]
	got := httptest.NewRecorder()
	p.ServeHTTP(got, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
	return got.Body.String()
}
