package native_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRefusedHistories has histories that providers refuse, and their words. The turn goes on, so does the next one, and one after
// a restart.
func TestRefusedHistories(t *testing.T) {
	chat := func(delta string) string {
		return `data: {"choices":[{"delta":` + delta + `,"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	}
	responses := func(items ...string) (stream string) {
		for _, item := range items {
			stream += `data: {"type":"response.output_item.done","item":` + item + "}\n\n"
		}
		return stream + `data: {"type":"response.completed","response":{"status":"completed"}}` + "\n\n"
	}
	id := "call_1__thought__" + strings.Repeat("CpkB/+", 100) + "SIGEND"
	const (
		ran      = `{"index":0,"id":"c","type":"function","function":{"name":"shell","arguments":"{\"command\":[\"true\"]}"}}`
		item     = `{"type":"function_call","call_id":"c","name":"shell","arguments":"{\"command\":[\"true\"]}"}`
		thought  = `{"type":"reasoning","summary":[],"encrypted_content":"ENC"}`
		message  = `{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]}`
		unsigned = "Function call is missing a thought_signature in functionCall parts."
	)
	lacks := func(part string) func(string) bool {
		return func(body string) bool { return strings.Contains(body, `"tool_calls"`) && !strings.Contains(body, part) }
	}
	has := func(part string) func(string) bool {
		return func(body string) bool { return strings.Contains(body, part) }
	}
	for _, tt := range []struct {
		name, wire, first string
		refuses           func(body string) bool
		words             string
	}{
		{"a signature in the id", "chat", chat(`{"tool_calls":[{"index":0,"id":"` + id + `","function":{"name":"shell","arguments":"{\"command\":[\"true\"]}"}}]}`), lacks(`"id":"` + id + `"`), unsigned},
		{"a long id", "responses", responses(strings.Replace(item, `"c"`, `"`+id+`"`, 1)), has(id), "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got a string with length 623 instead."},
		{"signed thinking of LiteLLM", "chat", chat(`{"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"SIG"}],"tool_calls":[` + ran + `]}`), lacks(`"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"SIG"}]`), "messages.1.content.0.type: Expected `thinking`, but found `tool_use`."},
		{"thinking of Copilot", "chat", chat(`{"reasoning_opaque":"OPQ","tool_calls":[` + ran + `]}`), lacks(`"reasoning_opaque":"OPQ"`), "Invalid signature in thinking block: it is missing"},
		{"a member that the provider does not take back", "chat", chat(`{"mood":"good","tool_calls":[` + ran + `]}`), has(`"mood"`), "unknown field `mood`"},
		{"encrypted thinking", "responses", responses(thought, item), has("ENC"), "The encrypted content gAAA could not be verified."},
		{"thinking alone", "responses", responses(thought), has(`"ENC"},{"type":"message","role":"user"`), "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
		{"a phase", "responses", responses(message, item), func(body string) bool {
			return strings.Contains(body, "I look.") && !strings.Contains(body, `"phase":"commentary"`)
		}, "no phase"},
		{"a phase that is refused", "responses", responses(message, item), has(`"phase"`), "Unknown parameter: 'input[2].phase'."},
		{"a blank text before a call", "chat", chat(`{"content":"\n\n","tool_calls":[` + ran + `]}`), has(`"content":"\n\n"`), "text content blocks must contain non-whitespace text"},
		{"a blank answer", "chat", chat(`{"content":" \n"}`), has(`"content":" \n"`), "messages.1: all messages must have non-empty content"},
		{"an output without a name", "chat", chat(`{"tool_calls":[` + ran + `]}`), has(`"tool_call_id":"c"}`), "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \""+tt.wire+"\"", native.Limits{})
			answered := false
			b.provider.Add(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				if tt.refuses(string(r.Body)) {
					return providertest.Turn{Status: 400, Body: `{"error":{"message":"` + tt.words + `"}}`}
				}
				if !answered {
					answered = true
					return providertest.Turn{Body: tt.first}
				}
				return providertest.Say("FIN")
			}})
			h := &host{exec: allow}
			c := b.start(t, h, protocol.Config{})
			path := configured(t, h).RolloutPath
			says(t, c, "first", "second")
			must.Equal(t, "the last event", "task_complete FIN", h.last())
			closed(t, c)
			b.reopen(t)
			after := &host{exec: allow}
			says(t, b.resume(t, path, protocol.Config{}, after), "third")
			must.Equal(t, "the last event after a restart", "task_complete FIN", after.last())
			validRequests(t, b.provider)
		})
	}
}
