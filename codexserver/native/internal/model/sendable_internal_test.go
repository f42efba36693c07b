package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// sendable returns the items of a request as each provider of a wire takes them.
func sendable(req *Request, chat bool) []protocol.ResponseItem {
	var f form
	if chat {
		f.without = outputsApart
	}
	_, items := f.history(req)
	return items
}

// plain reports whether a strict provider takes the items as they are.
func plain(chat bool, items []protocol.ResponseItem) bool {
	used, open, last := map[string]bool{}, map[string]bool{}, false // the calls without an output, and whether they are custom; the last item is a call
	for _, item := range items {
		call, isCall := CallOf(item)
		answer, isAnswer := AnswerOf(item)
		switch item := item.(type) {
		case protocol.FunctionCallItem:
			if !fits(item.Name) || !strings.HasPrefix(item.Arguments, "{") || !isSendable(jsontext.Value(item.Arguments)) {
				return false
			}
		case protocol.CustomToolCallItem:
			if !fits(item.Name) {
				return false
			}
		case protocol.MessageItem:
			if !isRole(item.Role) || item.Role == "assistant" && isBlank(item.Content) || slices.ContainsFunc(item.Content, func(p protocol.ContentItem) bool { return fittingPart(p, item.Role) != p }) {
				return false
			}
		case protocol.RawItem:
			if !slices.Contains(known, item.Type) {
				return false
			}
		}
		switch custom, is := open[answer.CallID]; {
		case isCall:
			if call.ID == "" || strings.ContainsFunc(call.ID, func(r rune) bool { return !fitsInID(r) }) || used[call.ID] || chat && len(open) > 0 && !last {
				return false
			}
			used[call.ID], open[call.ID] = true, call.Custom
		case isAnswer:
			if _, its := item.(protocol.CustomToolCallOutputItem); !is || its != custom {
				return false
			}
			delete(open, answer.CallID)
		case chat && len(open) > 0:
			return false
		}
		last = isCall
	}
	return len(open) == 0
}

// TestSendable has what providers refuse, and what they take.
func TestSendable(t *testing.T) {
	user := protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "u"}}}
	call := func(id, name, arguments string) protocol.ResponseItem {
		return protocol.FunctionCallItem{CallID: id, Name: name, Arguments: arguments}
	}
	out := func(id, output string) protocol.ResponseItem {
		return protocol.FunctionCallOutputItem{CallID: id, Output: output}
	}
	quote := func(said string) string {
		return "[The arguments of this call were no JSON object. Call the tool again with one. They were:\n" + said + "\n]\n"
	}
	picture := func(url string) protocol.ResponseItem {
		return protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: url}}}
	}
	thought := protocol.ReasoningItem{Summary: []protocol.ReasoningText{}}
	signed := "call_1__thought__" + strings.Repeat("CpkB/+", 50) + "="
	type items = []protocol.ResponseItem
	for _, tt := range []struct {
		name           string
		in, want, chat items // nil: as in, and as want
	}{
		{name: "calls of a response", in: items{user, thought, assistantMessage("a"), call("a", "shell", `{"x":1,"x":2}`), call("b", "x__y-Z9", " {}\n"), out("b", "2"), out("a", "1"), user}},
		{name: "ids of Kimi", in: items{call("functions.shell:0", "shell", `{}`), out("functions.shell:0", "")}},
		{name: "the name of an offered tool", in: items{call("a", "1password__get", `{}`), out("a", "")}},
		{name: "items of the API", in: items{protocol.RawItem{Type: "web_search_call", Raw: []byte(`{"type":"web_search_call"}`)}}},
		{name: "half an object", in: items{call("a", "shell", `{"command": ["bash"`), out("a", "no")}, want: items{call("a", "shell", "{}"), out("a", quote(`{"command": ["bash"`)+"no")}},
		{name: "a list", in: items{call("a", "shell", `["ls"]`), out("a", "no")}, want: items{call("a", "shell", "{}"), out("a", quote(`["ls"]`)+"no")}},
		{name: "half a character in an escape", in: items{call("a", "shell", `{"x":"\ud83d"}`), out("a", "no")}, want: items{call("a", "shell", "{}"), out("a", quote(`{"x":"\ud83d"}`)+"no")}},
		{name: "other bytes than UTF-8, and whole characters", in: items{call("a", "shell", "{\"x\":\"\xff\"}"), call("b", "shell", `{"x":"\ud83d\ude00"}`), out("a", ""), out("b", "")}},
		{name: "what no JSON has", in: items{call("a", "f", `{"x":1,}`), call("b", "f", `{'x':1}`), call("c", "f", `{"x":NaN}`), call("d", "f", "\uFEFF{}"), call("e", "f", "{}{}"), call("f", "f", "```json\n{}\n```"), call("g", "f", `{x:1}`),
			out("a", ""), out("b", ""), out("c", ""), out("d", ""), out("e", ""), out("f", ""), out("g", "")},
			want: items{call("a", "f", "{}"), call("b", "f", "{}"), call("c", "f", "{}"), call("d", "f", "{}"), call("e", "f", "{}"), call("f", "f", "{}"), call("g", "f", "{}"),
				out("a", quote(`{"x":1,}`)), out("b", quote(`{'x':1}`)), out("c", quote(`{"x":NaN}`)), out("d", quote("\uFEFF{}")), out("e", quote("{}{}")), out("f", quote("```json\n{}\n```")), out("g", quote(`{x:1}`))}},
		{name: "other names of an offered tool", in: items{call("a", "functions.search", "{}"), call("b", "search<|channel|>json", "{}"), call("c", "functions.search:3", "{}"), out("a", ""), out("b", ""), out("c", "")},
			want: items{call("a", "search", "{}"), call("b", "search", "{}"), call("c", "search", "{}"), out("a", ""), out("b", ""), out("c", "")}},
		{name: "a tag behind", in: items{call("a", "shell", `{}</tool_call>`), out("a", "no")}, want: items{call("a", "shell", "{}"), out("a", quote(`{}</tool_call>`)+"no")}},
		{name: "no arguments", in: items{call("a", "list", ""), call("b", "list", "null"), out("a", "1"), out("b", "2")}, want: items{call("a", "list", "{}"), call("b", "list", "{}"), out("a", "1"), out("b", "2")}},
		{name: "names", in: items{call("a", "functions.shell", "{}"), call("b", "shell<|channel|>commentary", "{}"), call("c", "", "{}"), call("d", "-x", "{}"), call("e", strings.Repeat("é", 60), "{}"), out("a", ""), out("b", ""), out("c", ""), out("d", ""), out("e", "")},
			want: items{call("a", "functions_shell", "{}"), call("b", "shell__channel__commentary", "{}"), call("c", "_", "{}"), call("d", "_-x", "{}"), call("e", strings.Repeat("_", 32), "{}"), out("a", ""), out("b", ""), out("c", ""), out("d", ""), out("e", "")}},
		{name: "an id again", in: items{call("a", "f", "{}"), out("a", "1"), user, call("a", "f", "{}"), call("a", "g", "{}"), out("a", "2"), out("a", "3")},
			want: items{call("a", "f", "{}"), out("a", "1"), user, call("a_2", "f", "{}"), call("a_3", "g", "{}"), out("a_2", "2"), out("a_3", "3")}},
		{name: "an id again, after a call without an output", in: items{call("a", "f", "{}"), user, call("a", "f", "{}"), out("a", "2")},
			want: items{call("a", "f", "{}"), out("a", noOutput), user, call("a_2", "f", "{}"), out("a_2", "2")}},
		{name: "no id, a long one, and one with a blank", in: items{call("", "f", "{}"), call(strings.Repeat("x", 70), "f", "{}"), call("a b", "f", "{}"), out("", "1"), out(strings.Repeat("x", 70), "2"), out("a b", "3")},
			want: items{call("call", "f", "{}"), call(strings.Repeat("x", 70), "f", "{}"), call("a_b", "f", "{}"), out("call", "1"), out(strings.Repeat("x", 70), "2"), out("a_b", "3")}},
		{name: "a signature in an id, which comes again", in: items{call(signed, "f", "{}"), out(signed, "1"), call(signed, "f", "{}"), out(signed, "2")},
			want: items{call(signed, "f", "{}"), out(signed, "1"), call("2_"+signed, "f", "{}"), out("2_"+signed, "2")}},
		{name: "blank messages of the assistant", in: items{user, assistantMessage("\n\n"), call("a", "f", "{}"), out("a", "1"), assistantMessage(" \t"), assistantMessage(""), protocol.MessageItem{Role: "assistant"}, user},
			want: items{user, call("a", "f", "{}"), out("a", "1"), user}},
		{name: "thinking alone", in: items{user, thought, user, thought, thought}, want: items{user, user}},
		{name: "thinking before what says nothing", in: items{user, thought, assistantMessage("\n"), user, thought, assistantMessage("a")}, want: items{user, user, thought, assistantMessage("a")}},
		{name: "thinking before a call, and before an output", in: items{user, thought, call("a", "f", "{}"), thought, out("a", "1")}, want: items{user, thought, call("a", "f", "{}"), out("a", "1")}},
		{name: "the phase of a message", in: items{protocol.MessageItem{Role: "assistant", Phase: "commentary", Content: assistantMessage("a").Content}}},
		{name: "no output", in: items{call("a", "f", "{}"), call("b", "f", "{"), user}, want: items{call("a", "f", "{}"), call("b", "f", "{}"), out("a", noOutput), out("b", quote("{")+noOutput), user}},
		{name: "outputs without calls", in: items{out("x", "1"), call("a", "f", "{}"), out("a", "1"), out("a", "2")},
			want: items{remark("an output without its call"), call("a", "f", "{}"), out("a", "1"), remark("an output without its call")}},
		{name: "an output of the other kind", in: items{protocol.CustomToolCallItem{CallID: "a", Name: "apply_patch", Input: "x"}, out("a", "1")},
			want: items{protocol.CustomToolCallItem{CallID: "a", Name: "apply_patch", Input: "x"}, protocol.CustomToolCallOutputItem{CallID: "a", Output: "1"}}},
		{name: "outputs further on", in: items{call("a", "f", "{}"), thought, call("b", "f", "{}"), user, out("b", "2"), picture("data:x"), out("a", "1")},
			chat: items{call("a", "f", "{}"), out("a", "1"), thought, call("b", "f", "{}"), out("b", "2"), user, picture("data:x")}},
		{name: "roles", in: items{protocol.MessageItem{Role: "tool", Content: assistantMessage("a").Content}, protocol.MessageItem{Role: "developer"}}, want: items{assistantMessage("a"), protocol.MessageItem{Role: "developer"}}},
		{name: "parts of another role, and of no wire", in: items{
			protocol.MessageItem{Role: "tool", Content: []protocol.ContentItem{{Type: "input_text", Text: "a"}, {Type: "input_image", ImageURL: "data:x"}}},
			protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "output_text", Text: "b"}, {Type: "input_file"}, {Type: "text", Text: "c"}, {Type: "input_image"}}},
		}, want: items{
			protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: "a"}, {Type: "output_text", Text: "[Left out: input_image]"}}},
			protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "b"}, {Type: "input_text", Text: "[Left out: input_file]"}, {Type: "input_text", Text: "c"}, {Type: "input_text", Text: "[Left out: input_image]"}}},
		}},
		{name: "calls of tools that nobody offers", in: items{protocol.RawItem{Type: "tool_search_output"}, protocol.RawItem{Type: "mcp_approval_request"}, protocol.RawItem{Type: "item_reference"}},
			want: items{remark("an item of the type tool_search_output"), remark("an item of the type mcp_approval_request"), remark("an item of the type item_reference")}},
		{name: "items of Codex, and of nobody", in: items{protocol.RawItem{Type: "ghost_snapshot"}, protocol.RawItem{Type: "future"}}, want: items{remark("an item of the type future")}},
		{name: "a PNG called JPEG", in: items{picture("data:image/jpeg;base64,iVBORw0KGgoAAAANSUhEUgAA"), picture("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"), picture("https://x/y.jpg"), picture("data:image/png;base64,AAAA")},
			want: items{picture("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"), picture("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"), picture("https://x/y.jpg"), picture("data:image/png;base64,AAAA")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == nil {
				tt.want = tt.in
			}
			before := slices.Clone(tt.in)
			req := &Request{Items: tt.in, Tools: []Tool{{Name: "1password__get"}, {Name: "search"}}}
			if tt.chat == nil {
				tt.chat = tt.want
			}
			must.Equal(t, "Responses", tt.want, sendable(req, false))
			must.Equal(t, "Chat", tt.chat, sendable(req, true))
			must.Equal(t, "the history", before, tt.in)
		})
	}
}

// TestForms has histories in forms that one provider or another wants, and not before it has refused the usual one.
func TestForms(t *testing.T) {
	user := protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "u"}}}
	thought := protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, EncryptedContent: new("ENC")}
	plain := protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, EncryptedContent: new(""), Content: []protocol.ReasoningText{{Type: byReasoningContent, Text: "raw"}}}
	signs := protocol.ReasoningItem{Content: []protocol.ReasoningText{{Type: CallSigns, Text: "{}"}}}
	compaction := protocol.RawItem{Type: "compaction", Raw: []byte(`{"type":"compaction","encrypted_content":"ENC"}`)}
	phased := assistantMessage("a")
	phased.Phase = "final_answer"
	long := strings.Repeat("x", 70)
	called := func(id string) []protocol.ResponseItem {
		return []protocol.ResponseItem{protocol.FunctionCallItem{CallID: id, Name: "f", Arguments: "{}"}, protocol.FunctionCallOutputItem{CallID: id, Output: "1"}}
	}
	for _, tt := range []struct {
		name     string
		form     without
		in, want []protocol.ResponseItem
	}{
		{"long ids", shortIDs, slices.Concat(called(long), called(long+"y"), called("z")), slices.Concat(called(long[:64]), called(long[:56]+"_2"), called("z"))},
		{"encrypted thinking", encrypted, []protocol.ResponseItem{user, thought, phased, user, plain, phased}, []protocol.ResponseItem{user, phased, user, plain, phased}},
		{"an encrypted summary", encrypted, []protocol.ResponseItem{compaction, user}, []protocol.ResponseItem{remark("a summary that only another account can read"), user}},
		{"phases", phases, []protocol.ResponseItem{phased}, []protocol.ResponseItem{assistantMessage("a")}},
		{"signs", besideCalls, slices.Concat([]protocol.ResponseItem{plain, signs}, called("c")), slices.Concat([]protocol.ResponseItem{plain}, called("c"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := form{without: tt.form}.history(&Request{Items: tt.in})
			must.Equal(t, "in the form", tt.want, got)
			_, got = form{}.history(&Request{Items: tt.in})
			must.Equal(t, "in the usual form", tt.in, got)
		})
	}
}

// TestWords looks at the table of the words with which providers refuse.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range refusals {
		key := fmt.Sprint(r.means, r.parts)
		if r.by == "" || len(r.parts) == 0 || slices.Contains(r.parts, "") || seen[key] || strings.ToLower(strings.Join(r.parts, "")) != strings.Join(r.parts, "") {
			t.Errorf("%+v: who says it? Is it there twice, or has it capitals?", r)
		}
		seen[key] = true
	}
}

// TestBeside merges what comes in pieces beside what is known, as it came, and bounds it.
func TestBeside(t *testing.T) {
	big := `"` + strings.Repeat("x", maxBeside) + `"`
	for _, tt := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"what is known", []string{`{"role":"assistant","content":"a","tool_calls":[{}],"Reasoning-Content":"b","refusal":"r","function_call":{"name":"f"},"tool_call_id":"c"}`}, ``},
		{"what says nothing", []string{`{"a":null,"b":"","c":{},"d":[],"e":false}`}, ``},
		{"a text, and one that comes again whole", []string{`{"reasoning_opaque":"OPQ"}`, `{"reasoning_opaque":"OPQ"}`}, `{"reasoning_opaque":"OPQ"}`},
		{"texts in pieces", []string{`{"reasoning_text":"ha","opaque":"A\ud83d"}`, `{"reasoning_text":"ha","opaque":"\ude00B"}`}, `{"reasoning_text":"haha","opaque":"A😀B"}`},
		{"blocks of LiteLLM", []string{`{"thinking_blocks":[{"type":"thinking","thinking":"ha","signature":null}]}`, `{"thinking_blocks":[{"type":"thinking","thinking":"ha"}]}`,
			`{"thinking_blocks":[{"type":"thinking","thinking":"","signature":"SIG"}]}`, `{"thinking_blocks":[{"type":"redacted_thinking","data":"R"},{"type":"redacted_thinking","data":"S"}]}`,
			`{"thinking_blocks":[{"type":"thinking","thinking":"b"}]}`, `{"thinking_blocks":[{"type":"thinking","thinking":"b","signature":"T"}]}`},
			`{"thinking_blocks":[{"type":"thinking","thinking":"haha","signature":"SIG"},{"type":"redacted_thinking","data":"R"},{"type":"redacted_thinking","data":"S"},{"type":"thinking","thinking":"b","signature":"T"}]}`},
		{"details of OpenRouter", []string{`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":0,"signature":"S"}]}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"X","id":null,"index":1}]}`},
			`{"reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"signature":"S"},{"type":"reasoning.encrypted","data":"X","id":null,"index":1}]}`},
		{"objects", []string{`{"provider_specific_fields":{"thought_signature":"A","n":1}}`, `{"provider_specific_fields":{"thought_signature":"","n":2,"x":[true,[1.50]]}}`}, `{"provider_specific_fields":{"thought_signature":"A","n":2,"x":[true,[1.50]]}}`},
		{"names twice", []string{"{\"x\":{\"a\":1,\"a\":2,\"\xff\":3,\"\uFFFD\":4}}"}, `{"x":{"a":2,"�":4}}`},
		{"too much", []string{`{"a":` + big + `,"signature":"S"}`, `{"a":"x"}`}, `{"signature":"S"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b beside
			for _, piece := range tt.pieces {
				b.add(parse([]byte(piece)), knownOfMessages)
			}
			must.Equal(t, "result", tt.want, string(b.json()))
			must.Equal(t, "from a file", tt.want, string(allowed(b.json(), knownOfMessages)))
		})
	}
	var many beside
	for i := range 2 * maxNames {
		many.add(parse(fmt.Appendf(nil, `{"m%d":1}`, i)), nil)
	}
	must.Equal(t, "names", maxNames, len(many.names))
}

// scripted makes a history of bytes.
func scripted(script []byte) (items []protocol.ResponseItem) {
	next := func(of ...string) string {
		if len(script) == 0 {
			return of[0]
		}
		one := of[int(script[0])%len(of)]
		script = script[1:]
		return one
	}
	for len(script) > 0 {
		id := func() string { return next("a", "b", "functions.f:0", "", "a b", strings.Repeat("z", 65), "\xff") }
		name := func() string {
			return next("shell", "list", "functions.shell", "", "9x", "x\n", strings.Repeat("n", 65))
		}
		switch next("call", "call", "out", "out", "user", "said", "thought", "custom", "custom out", "local", "raw", "role", "picture") {
		case "call":
			items = append(items, protocol.FunctionCallItem{CallID: id(), Name: name(), Arguments: next(`{}`, `{"a":{"b":[1]}}`, `{"a"`, ``, `null`, `[1]`, `"{}"`, `{}x`, `{"a":1,"a":2}`, "{\"\xff\":1}", `{"a":"\ud83d"}`)})
		case "out":
			items = append(items, protocol.FunctionCallOutputItem{CallID: id(), Output: fmt.Sprint("output ", len(items))})
		case "user":
			items = append(items, protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: fmt.Sprint("user ", len(items))}}})
		case "said":
			items = append(items, assistantMessage(next(fmt.Sprint("said ", len(items)), "\n", "")))
		case "thought":
			items = append(items, protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, Content: []protocol.ReasoningText{{Type: next(byReasoning, byReasoningContent, CallSigns), Text: next("t", "{}")}}})
		case "custom":
			items = append(items, protocol.CustomToolCallItem{CallID: id(), Name: name(), Input: "{"})
		case "custom out":
			items = append(items, protocol.CustomToolCallOutputItem{CallID: id(), Output: fmt.Sprint("output ", len(items))})
		case "local":
			items = append(items, protocol.LocalShellCallItem{CallID: id(), Status: "completed", Action: protocol.LocalShellAction{Type: "exec", Command: []string{"ls"}}})
		case "raw":
			kind := next("web_search_call", "ghost_snapshot", "future")
			items = append(items, protocol.RawItem{Type: kind, Raw: []byte(`{"type":"` + kind + `"}`)})
		case "role":
			items = append(items, protocol.MessageItem{Role: next("developer", "system", "tool", ""), Content: []protocol.ContentItem{{Type: "input_text", Text: "role"}}})
		case "picture":
			items = append(items, protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: "data:image/jpeg;base64,iVBORw0KGgoAAAANSUhEUgAA"}}})
		}
	}
	return items
}

// refused returns why a strict provider refuses a request, or "".
func refused(chat bool, items []protocol.ResponseItem) string {
	body, err := wire(responsesWire{}).body(&Request{Model: "m", Items: items})
	if chat {
		body, err = chatWire{form: form{without: rolesInARow | extras | outputsApart}}.body(&Request{Model: "m", Items: items})
	}
	var b struct {
		Messages []struct {
			Role       string
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Input []struct {
			Type, Role, Name, Arguments string
			CallID                      string `json:"call_id"`
			Content                     []struct{ Type string }
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if err != nil {
		return err.Error()
	}
	if strings.Contains(string(body), "data:image/jpeg;base64,iVBOR") {
		return "a PNG called JPEG"
	}
	used, open := map[string]bool{}, map[string]bool{}
	call := func(id, name string, arguments *string) string {
		switch {
		case id == "" || used[id]:
			return fmt.Sprintf("the id %q", id)
		case !fits(name):
			return fmt.Sprintf("the name %q", name)
		case arguments != nil && json.Unmarshal([]byte(*arguments), new(map[string]any), jsontext.AllowDuplicateNames(true)) != nil || arguments != nil && !strings.HasPrefix(strings.TrimSpace(*arguments), "{"):
			return fmt.Sprintf("the arguments %q", *arguments)
		}
		used[id], open[id] = true, true
		return ""
	}
	answer := func(id string) string {
		if !open[id] {
			return fmt.Sprintf("an output of %q", id)
		}
		delete(open, id)
		return ""
	}
	for i, m := range b.Messages {
		why := ""
		switch {
		case m.Role == "tool":
			why = answer(m.ToolCallID)
		case len(open) > 0:
			why = "a call without an output"
		case m.Role == "assistant":
			for _, c := range m.ToolCalls {
				why += call(c.ID, c.Function.Name, &c.Function.Arguments)
			}
		case !slices.Contains([]string{"user", "system", "developer"}, m.Role):
			why = "the role " + m.Role
		case i > 0 && b.Messages[i-1].Role == m.Role:
			why = "a role twice"
		}
		if why != "" {
			return fmt.Sprintf("message %d: %s", i, why)
		}
	}
	for i, it := range b.Input {
		why := ""
		switch it.Type {
		case "function_call":
			why = call(it.CallID, it.Name, &it.Arguments)
		case "custom_tool_call":
			why = call(it.CallID, it.Name, nil)
		case "local_shell_call":
			why = call(it.CallID, "shell", nil)
		case "function_call_output", "custom_tool_call_output":
			why = answer(it.CallID)
		case "message":
			if !slices.Contains([]string{"user", "assistant", "system", "developer"}, it.Role) {
				why = "the role " + it.Role
			}
			for _, part := range it.Content {
				if (it.Role == "assistant") != (part.Type == "output_text") {
					why = "a part of the type " + part.Type + " of the role " + it.Role
				}
			}
		case "reasoning", "web_search_call":
		default:
			why = "the type " + it.Type
		}
		if why != "" {
			return fmt.Sprintf("item %d: %s", i, why)
		}
	}
	if len(open) > 0 {
		return "a call without an output"
	}
	return ""
}

// FuzzSendable sends any history that a model, a file or a server may write: a strict provider takes it, what was sendable
// stays as it is, nothing is lost without a remark, and a longer history begins with the request of a shorter one.
func FuzzSendable(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x00\x04"))
	f.Add([]byte("\x00\x01\x02\x03\x00\x04\x05\x06\x02\x01\x02\x04\x08\x09\x0a\x0b\x01\x0c"))
	f.Add([]byte("\x00\x00\x00\x02\x04\x02\x00\x00\x00\x00\x00\x02\x00\x02\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		const most = 200
		items := scripted(script[:min(len(script), most)])
		m := mender{items: items}
		m.pair()
		for _, chat := range []bool{false, true} {
			sent := sendable(&Request{Items: items}, chat)
			if why := refused(chat, items); why != "" {
				t.Fatalf("chat %t: %s\n%+v\n%+v", chat, why, items, sent)
			}
			if len(items) > 0 && plain(chat, items) && !cmp.Equal(items, sent) {
				t.Fatalf("chat %t: a provider takes it as it is, and it was changed:\n%s", chat, cmp.Diff(items, sent))
			}
			if again := sendable(&Request{Items: sent}, chat); !cmp.Equal(sent, again) {
				t.Fatalf("chat %t: what is sendable was changed:\n%s", chat, cmp.Diff(sent, again))
			}
			said := fmt.Sprintf("%+v", sent)
			for i, item := range items {
				if answer, ok := AnswerOf(item); ok && !strings.Contains(said, answer.Output) && !strings.Contains(said, "an output without its call") {
					t.Fatalf("chat %t: item %d is lost: %+v", chat, i, item)
				}
			}
			for n := range items {
				whole := n == 0 || !isCall(items[n-1]) || m.pairs[n-1] >= 0 // no call is open: none has its output in the rest
				for _, at := range m.pairs[:n] {
					whole = whole && at < n
				}
				if !whole {
					continue
				}
				if short := sendable(&Request{Items: items[:n]}, chat); len(short) > len(sent) || !cmp.Equal(short, sent[:len(short)]) {
					t.Fatalf("chat %t: the first %d items:\n%s", chat, n, cmp.Diff(short, sent))
				}
			}
		}
	})
}
