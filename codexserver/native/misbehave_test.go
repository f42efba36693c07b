package native_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
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
