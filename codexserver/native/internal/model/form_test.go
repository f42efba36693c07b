package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

func user(texts ...string) protocol.MessageItem {
	m := protocol.MessageItem{Role: "user"}
	for _, s := range texts {
		m.Content = append(m.Content, protocol.ContentItem{Type: "input_text", Text: s})
	}
	return m
}

func output(id, text string) protocol.ResponseItem {
	return protocol.FunctionCallOutputItem{CallID: id, Output: text}
}

func developer(text string) protocol.MessageItem {
	m := user(text)
	m.Role = "developer"
	return m
}

var picture = protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: "data:x"}}}

// TestMessagesForAnyTemplate checks that there is one system message, the first, and that no two
// messages of one role come in a row, results of calls aside.
func TestMessagesForAnyTemplate(t *testing.T) {
	thought := protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: "text", Text: "hm"}}}
	thoughtOf := func(encrypted *string, content []protocol.ReasoningText) []protocol.ResponseItem {
		return []protocol.ResponseItem{protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, Content: content, EncryptedContent: encrypted}, text("so")}
	}
	raw := []protocol.ReasoningText{{Type: "reasoning_text", Text: "raw"}}
	const responses = "what the Responses API gets"
	for name, tt := range map[string]struct {
		instructions string
		items        []protocol.ResponseItem
		want         string
	}{
		// llama.cpp sends its reasoning with an empty encrypted_content, and refuses an item without content.
		"encrypted":     {responses, thoughtOf(new("ENC"), raw), `[{"type":"reasoning","summary":[],"encrypted_content":"ENC"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]`},
		"plain":         {responses, thoughtOf(new(""), raw), `[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":""},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]`},
		"empty":         {responses, thoughtOf(new(""), nil), `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]`},
		"not encrypted": {responses, thoughtOf(nil, raw), `[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]`},
		"the first request": {"be", []protocol.ResponseItem{user("rules"), user("environment"), user("go")},
			`[{"role":"system","content":"be"},{"role":"user","content":"rules\n\nenvironment\n\ngo"}]`},
		"a developer": {"be", []protocol.ResponseItem{developer("kind"), user("go"), text("so"), developer("short"), user("on")},
			`[{"role":"system","content":"be\n\nkind\n\nshort"},{"role":"user","content":"go"},{"role":"assistant","content":"so"},{"role":"user","content":"on"}]`},
		"only a developer": {"", []protocol.ResponseItem{developer("kind"), user("go")}, `[{"role":"system","content":"kind"},{"role":"user","content":"go"}]`},
		"no instructions":  {"", []protocol.ResponseItem{user("go")}, `[{"role":"user","content":"go"}]`},
		"answers in a row": {"", []protocol.ResponseItem{user("go"), text("a"), thought, text("b"), call("c", "f", "{}"), output("c", "o"), text("d"), text("e")},
			`[{"role":"user","content":"go"},{"role":"assistant","content":"a\n\nb","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning":"hm"},` +
				`{"role":"tool","content":"o","tool_call_id":"c"},{"role":"assistant","content":"d\n\ne"}]`},
		"pictures": {"", []protocol.ResponseItem{user("a"), picture, user("b", "c"), user("d")},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"bc\n\nd"}]}]`},
		"parts":     {"", []protocol.ResponseItem{user("a", "b")}, `[{"role":"user","content":"ab"}]`},
		"no parts":  {"", []protocol.ResponseItem{user(), text("so")}, `[{"role":"user","content":""},{"role":"assistant","content":"so"}]`},
		"results":   {"", []protocol.ResponseItem{call("c", "f", "{}"), call("d", "f", "{}"), output("c", "1"), output("d", "2"), user("on")}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"c"},{"role":"tool","content":"2","tool_call_id":"d"},{"role":"user","content":"on"}]`},
		"two calls": {"", []protocol.ResponseItem{call("c", "f", "{}"), output("c", "1"), call("d", "f", "{}"), output("d", "2")}, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"c"},{"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"2","tool_call_id":"d"}]`},
	} {
		a, p := &answers{all: []answer{{body: sse(chatDone, `{"type":"response.completed"}`)}}}, config.Provider{}
		if tt.instructions == responses {
			p.WireAPI = config.WireResponses
		}
		send(t, client(a, p), &model.Request{Instructions: tt.instructions, Items: tt.items})
		var body struct{ Messages, Input json.RawMessage }
		must.OK(t, json.Unmarshal([]byte(a.bodies[0]), &body))
		must.Equal(t, name, tt.want, string(body.Messages)+string(body.Input))
	}
}

// TestRefusedForms has providers that refuse a part of requests, with words of their own. A request is
// sent once more without the part, and later ones lack it at once.
func TestRefusedForms(t *testing.T) {
	req := &model.Request{
		Model: "m", Instructions: "be", ConversationID: "x", Effort: protocol.EffortHigh, Reasoning: &model.Reasoning{Effort: protocol.EffortHigh},
		Items: []protocol.ResponseItem{user("go"), call("c", "f", "{}"), output("c", "o"), picture},
		Tools: []model.Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)}},
	}
	const between = `"tool_call_id":"c"},{"role":"user"`
	long := strings.Repeat("x", 70)
	for _, tt := range []struct {
		name, part, wires string
		status            int
		words             []string
	}{
		{"effort", `"effort":"high"`, "responses", 400, []string{"Unsupported parameter: 'reasoning.effort' is not supported with this model.", "Encrypted content needs reasoning.summary"}},
		{"reasoning_effort", `"reasoning_effort"`, "chat", 400, []string{"Unrecognized request argument supplied: reasoning_effort", "unknown field reasoning_effort"}},
		{"strict", `"strict"`, "chat responses", 422, []string{"tools.0.function.strict: Extra inputs are not permitted", "Unknown name \\\"strict\\\""}},
		{"stream_options", `"stream_options"`, "chat", 400, []string{"Unrecognized request argument supplied: stream_options"}},
		{"null", `"content":null`, "chat", 422, []string{"messages.1.content: Input should be a valid string", "invalid type: null, expected a string", "'NoneType' object is not iterable"}},
		{"a user behind a tool", between, "chat", 400, []string{"Unexpected role 'user' after role 'tool'", "invalid_request_message_order", "roles must alternate"}},
		{"a user behind a tool, in a template", between, "chat", 500, []string{"Jinja Exception: After a tool's message comes the assistant's"}},
		{"a user behind a tool, in the Responses API", `{"type":"function_call_output","call_id":"c","output":"o"},{"type":"message","role":"user"`, "responses", 400, []string{"Unexpected role 'user' after role 'tool'"}},
		{"a user behind a user", `"}]},{"type":"message","role":"user"`, "responses", 400, []string{"conversation roles must alternate user and assistant"}},
		{"the developer's role", `"role":"developer"`, "responses", 400, []string{"System message must be at the beginning.", "conversation roles must alternate user and assistant", "Unknown role: developer", "Jinja Exception: no"}},
		{"pictures", "data:x", "chat responses", 404, []string{"No endpoints found that support image input"}},
		{"pictures, in other words", "data:x", "chat responses", 400, []string{"This model does not accept images", "At most 0 image(s) may be provided in one prompt.", "I am a text model without vision"}},
		{"reasoning_effort, in other words", `"reasoning_effort"`, "chat", 400, []string{`\"llama3.2\" does not support thinking`, `think value \"high\" is not supported for this model`}},
		{"reasoning", `"effort":"high"`, "responses", 400, []string{"Unknown parameter: 'reasoning'.", "Encrypted content is not supported with this model."}},
		{"the system's role", `"role":"system"`, "chat", 400, []string{"System role not supported", "Unsupported value: 'messages[0].role' does not support 'system' with this model."}},
		{"the system's role, in a template", `"role":"system"`, "chat", 500, []string{"Jinja Exception: System role not supported"}},
		{"the answer's schema", `"json_schema"`, "chat responses", 400, []string{"This response_format type is unavailable now", "Input should be 'text' or 'json_object', not json_schema", "Unknown parameter: 'text.format'"}},
		{"ids of calls", `"c"`, "chat responses", 400, []string{"Tool call id was c but must be a-z, A-Z, 0-9, with a length of 9.", "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", "Invalid 'input[1].call_id': string too long."}},
		{"streaming", `"stream":true`, "chat responses", 400, []string{"Your organization must be verified to stream this model.", "Streaming is not supported for this model.", "Unsupported value: 'stream' does not support true with this model.",
			"This model doesn't support tool use in streaming mode.", "Cannot use tools with stream"}},
		{"encrypted thinking", `"encrypted_content":"ENC"`, "responses", 400, []string{"The encrypted content gAAA could not be verified.", "invalid_encrypted_content", "Encrypted content organization_id did not match the target organization."}},
		{"outputs without a name", `"tool_call_id":"c"}`, "chat", 400, []string{"* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.", "Name cannot be empty"}},
		{"phases", `"phase"`, "responses", 400, []string{"Unknown parameter: 'input[3].phase'."}},
		{"long ids of calls", long, "chat responses", 400, []string{"Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.", "messages.1.content.0.tool_use.id: String should have at most 64 characters"}},
		{"blank outputs", `"content":" "`, "chat", 400, []string{"messages: text content blocks must contain non-whitespace text", "The text field in the ContentBlock object at messages.1.content.0 is blank."}},
		{"what a message had beside", `"sig":"SIG"`, "chat", 400, []string{"messages.1.sig: Extra inputs are not permitted", "unknown field `sig`", "Invalid `signature` in `thinking` block"}},
		{"calls of another model", `"arguments":"{}"}}`, "chat", 400, []string{"Function call is missing a thought_signature in functionCall parts."}},
		{"streaming, in other words", `"stream":true`, "chat responses", 400, []string{"no stream with tools please"}},
		{"tool_choice none", `"tool_choice":"none"`, "chat responses", 400, []string{"tool_choice: none is not supported", "toolChoice must be auto or any"}},
		{"no description", `"description":""`, "chat responses", 400, []string{"Invalid length for parameter toolConfig.tools[0].toolSpec.description, value: 0, valid min length: 1", "tools.0.function.description is empty"}},
		{"a member of the Responses API", `"prompt_cache_key"`, "responses", 400, []string{"Unknown parameter: 'prompt_cache_key'."}},
		{"members of the Responses API", `"store"`, "responses", 422, []string{"body.store: Extra inputs are not permitted"}},
	} {
		for wire := range strings.FieldsSeq(tt.wires) {
			for _, words := range tt.words {
				refuse := func(body string) *answer {
					if !strings.Contains(body, tt.part) {
						return nil
					}
					return &answer{status: tt.status, body: `{"error":{"message":"` + words + `"}}`}
				}
				a := &answers{all: []answer{{body: sse(chatDone, `{"type":"response.completed"}`)}}, refuse: refuse}
				c := client(a, config.Provider{WireAPI: config.WireAPI(wire)})
				req := *req
				switch tt.name {
				case "the answer's schema":
					req.OutputSchema, req.NoCalls = []byte(`{"type":"object"}`), true
				case "encrypted thinking":
					req.Items = append(slices.Clip(req.Items), protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, EncryptedContent: new("ENC")}, text("so"))
				case "phases":
					req.Items = append(slices.Clip(req.Items), protocol.MessageItem{Role: "assistant", Phase: "commentary", Content: user("so").Content})
				case "long ids of calls":
					req.Items = append(slices.Clip(req.Items), call(long, "f", "{}"), output(long, "o"))
				case "blank outputs":
					req.Items = append(slices.Clip(req.Items), call("d", "f", "{}"), output("d", " "))
				case "what a message had beside":
					req.Items = append(slices.Clip(req.Items), protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: model.CallSigns, Text: `{"message":{"sig":"SIG"}}`}}}, text("so"))
				case "tool_choice none":
					req.NoCalls = true
				case "the developer's role":
					req.Items = append(slices.Clip(req.Items), developer("short"))
				case "a user behind a user":
					req.Items = append(slices.Clip(req.Items), user("on"))
				}
				for range 2 {
					if _, err := c.Stream(t.Context(), &req, func(protocol.EventMsg) {}); err != nil {
						t.Fatalf("%s, %s, %q: %v", tt.name, wire, words, err)
					}
				}
				must.Equal(t, fmt.Sprintf("%s, %s, %q", tt.name, wire, words), 3, len(a.bodies))
			}
		}
	}
}

// TestSeveralRefusedForms has a provider that refuses one part after another, and one that refuses whatever
// is sent: each form is tried once, and none is remembered.
func TestSeveralRefusedForms(t *testing.T) {
	req := &model.Request{Effort: protocol.EffortLow, Items: []protocol.ResponseItem{call("c", "f", "{}"), output("c", "o"), user("on")}}
	parts := []string{"stream_options", "reasoning_effort", `"content":null`}
	a := &answers{all: []answer{{body: sse(chatDone)}}, refuse: func(body string) *answer {
		for _, part := range parts {
			if strings.Contains(body, part) {
				return &answer{status: 400, body: "no " + part}
			}
		}
		return nil
	}}
	c := client(a, config.Provider{})
	if _, err := c.Stream(t.Context(), req, func(protocol.EventMsg) {}); err != nil || len(a.bodies) != 4 {
		t.Errorf("%d requests, %v", len(a.bodies), err)
	}
	a = &answers{all: []answer{{body: sse(chatDone)}}, refuse: func(string) *answer {
		return &answer{status: 400, body: "I do not like stream_options, the effort, roles, and content"}
	}}
	c = client(a, config.Provider{})
	for n := 1; n <= 2; n++ {
		if _, err := c.Stream(t.Context(), req, func(protocol.EventMsg) {}); err == nil || !strings.Contains(err.Error(), "I do not like") || len(a.bodies) != 5*n {
			t.Errorf("%d requests, %v", len(a.bodies), err)
		}
	}
}

// TestFormsInAStream has refusals with status 200, before and behind the beginning of an answer.
func TestFormsInAStream(t *testing.T) {
	refusal := `{"error":{"message":"messages.0.content must be a text, not null","code":400}}`
	req := &model.Request{Items: []protocol.ResponseItem{call("c", "f", "{}"), output("c", "o")}}
	for body, requests := range map[string]int{sse(refusal): 2, refusal: 2, sse(chatText, refusal): 1} {
		a := &answers{all: []answer{{body: body}, {body: sse(chatDone)}}}
		_, err := client(a, config.Provider{}).Stream(t.Context(), req, func(protocol.EventMsg) {})
		if len(a.bodies) != requests || (err == nil) != (requests == 2) {
			t.Errorf("%s: %d requests, %v", body, len(a.bodies), err)
		}
	}
}

// TestRefusedTools has a provider that refuses schemas. The tools of MCP servers get plain ones, and those
// that are refused all the same are left out.
func TestRefusedTools(t *testing.T) {
	tool := func(name, schema string) model.Tool {
		return model.Tool{Name: name, Parameters: []byte(schema), Foreign: strings.HasPrefix(name, "s__")}
	}
	good, bad := `{"type":"object","properties":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"l":{"type":"array"}}}`
	tools := []model.Tool{tool("shell", good), tool("s__good", good), tool("s__bad", bad), tool("s__badly", good)}
	names := func(body string) (all []string) {
		var b struct {
			Tools []struct {
				Name     string
				Function struct{ Name string }
			}
		}
		must.OK(t, json.Unmarshal([]byte(body), &b))
		for _, one := range b.Tools {
			all = append(all, one.Name+one.Function.Name)
		}
		return all
	}
	all := []string{"shell", "s__good", "s__bad", "s__badly"}
	for _, tt := range []struct {
		name    string
		refuses func(body string) bool
		words   string
		want    []string
	}{
		{"until it is plain", func(body string) bool { return strings.Contains(body, `{"type":"array"}`) }, "Invalid schema for function 's__bad': array schema missing items", all},
		{"by its name", func(body string) bool { return strings.Contains(body, `"s__bad"`) }, `{"error":{"message":"Invalid schema for function 's__bad'"}}`, []string{"shell", "s__good", "s__badly"}},
		{"by its name in quotes", func(body string) bool { return strings.Contains(body, `"s__bad"`) }, `{"error":{"message":"schema of \"s__bad\" is no object"}}`, []string{"shell", "s__good", "s__badly"}},
		{"by its place", func(body string) bool { return strings.Contains(body, `"s__bad"`) }, "tools.2.custom.input_schema: is invalid", []string{"shell", "s__good", "s__badly"}},
		{"by its place among functions", func(body string) bool { return strings.Contains(body, `"s__bad"`) }, "tools[0].function_declarations[2].parameters.properties[l].items: missing field", []string{"shell", "s__good", "s__badly"}},
		{"two of them", func(body string) bool { return strings.Contains(body, `"s__bad`) }, "tools[2].parameters: no", []string{"shell", "s__good"}},
		{"by their number", func(body string) bool { return len(names(body)) > 2 }, "Invalid 'tools': array too long. Expected an array with maximum length 2", []string{"shell"}},
		{"without a name", func(body string) bool { return strings.Contains(body, `"s__bad"`) }, "a schema is invalid", []string{"shell"}},
	} {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			a := &answers{all: []answer{{body: sse(chatDone, `{"type":"response.completed"}`)}}, refuse: func(body string) *answer {
				if !tt.refuses(body) {
					return nil
				}
				return &answer{status: 400, body: tt.words}
			}}
			c := client(a, config.Provider{WireAPI: wire})
			var left []string
			for range 2 {
				if _, err := c.Stream(t.Context(), &model.Request{Model: "m", Tools: tools}, func(e protocol.EventMsg) {
					if m, ok := e.(protocol.BackgroundEvent); ok {
						_, refused, _ := strings.Cut(m.Message, ": ")
						left = append(left, strings.Split(refused, ", ")...)
					}
				}); err != nil {
					t.Fatalf("%s, %s: %v", tt.name, wire, err)
				}
			}
			got := names(a.bodies[len(a.bodies)-1])
			must.Equal(t, fmt.Sprintf("%s, %s", tt.name, wire), tt.want, got)
			if d := cmp.Diff(all, slices.Concat(got, left), cmp.Transformer("sort", slices.Sorted[string])); len(left)+len(got) != len(all) {
				t.Errorf("%s, %s: %v were left out: %s", tt.name, wire, left, d)
			}
			if n := len(a.bodies); !slices.Equal(names(a.bodies[n-2]), got) {
				t.Errorf("%s, %s: the next request is not as the one before", tt.name, wire)
			}
		}
	}
	many := tools[:1:1]
	for i := range 100 {
		many = append(many, tool(fmt.Sprintf("s__%d", i), good))
	}
	first := &answers{all: []answer{{body: sse(chatDone)}}, refuse: func(body string) *answer {
		if got := names(body); len(got) > 1 {
			return &answer{status: 400, body: "Invalid schema for function '" + got[1] + "'"}
		}
		return nil
	}}
	if _, err := client(first, config.Provider{}).Stream(t.Context(), &model.Request{Tools: many}, func(protocol.EventMsg) {}); err != nil || len(first.bodies) > 20 {
		t.Errorf("a hundred refused tools: %d requests, %v", len(first.bodies), err)
	}
	a := &answers{all: []answer{{status: 400, body: "Invalid schema for function 'shell'"}}}
	if _, err := client(a, config.Provider{}).Stream(t.Context(), &model.Request{Tools: tools[:1]}, func(protocol.EventMsg) {}); err == nil {
		t.Error("a tool of the engine was left out")
	}
}

// TestBaseURLs has addresses in the ways in which pages and people write them.
func TestBaseURLs(t *testing.T) {
	for base, want := range map[string]string{
		"http://h/v1":                        "http://h/v1/chat/completions?k=v",
		"http://h/v1/":                       "http://h/v1/chat/completions?k=v",
		"http://h":                           "http://h/chat/completions?k=v",
		"http://h/v1?api-version=2024-10-21": "http://h/v1/chat/completions?api-version=2024-10-21&k=v",
		"http://h/v1/?api-version=2024-10-21&a=b": "http://h/v1/chat/completions?api-version=2024-10-21&a=b&k=v",
		"http://h/a%2Fb/v1?k=w":                   "http://h/a%2Fb/v1/chat/completions?k=v",
		"http://h/v1?b=a%20b;c&beta&%6B=w":        "http://h/v1/chat/completions?b=a%20b;c&beta&k=v",
		"http://h/v1/chat/completions":            "http://h/v1/chat/completions?k=v",
		"http://h/a%2Fb/responses/?x=1":           "http://h/a%2Fb/chat/completions?x=1&k=v",
		"http://h/v1?":                            "http://h/v1/chat/completions?k=v",
	} {
		a := &answers{all: []answer{{body: sse(chatDone)}}}
		send(t, client(a, config.Provider{BaseURL: base, QueryParams: map[string]string{"k": "v"}}), &model.Request{})
		must.Equal(t, base, want, fmt.Sprint(a.requests[0].URL))
	}
}
