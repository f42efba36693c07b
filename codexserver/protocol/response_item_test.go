package protocol_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Items of recorded rollouts and requests: each is read and written as it was.
var recordedItems = []string{
	`{"type":"message","role":"user","content":[{"type":"input_text","text":"run ` + "`git init`" + `\n"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`,
	`{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}`,
	`{"type":"message","role":"assistant","content":[]}`,
	`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"ENC"}`,
	`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}],"encrypted_content":null}`,
	`{"type":"function_call","name":"shell","arguments":"{\"command\": [\"git\", \"init\"], \"workdir\": null}","call_id":"call1234"}`,
	`{"type":"function_call_output","call_id":"call1234","output":"{\"output\":\"x\\n\"}"}`,
	`{"type":"custom_tool_call","status":"completed","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n"}`,
	`{"type":"custom_tool_call_output","call_id":"c","output":"ok"}`,
	`{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"],"timeout_ms":1000,"working_directory":"/"}}`,
	`{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}`,
}

func TestItemsRoundTrip(t *testing.T) {
	for _, raw := range recordedItems {
		item, err := protocol.ParseItem([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got, err := protocol.AppendItem([]byte("x"), item)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		must.Equal(t, "the item", "x"+raw, string(got))
	}
}

func TestItemsOfAnotherShape(t *testing.T) {
	for _, raw := range []string{``, `7`, `{"type":"message","role":7}`, `{"type":"function_call","arguments":{}}`, `{"type":"message"`} {
		if item, err := protocol.ParseItem([]byte(raw)); err == nil {
			t.Errorf("%s: read as %#v", raw, item)
		}
	}
}

func TestItemsReplaceInvalidUTF8(t *testing.T) {
	for _, item := range []protocol.ResponseItem{
		protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: "a\xffb"}}},
		protocol.FunctionCallItem{Name: "n", Arguments: "a\xffb", CallID: "c"},
		protocol.FunctionCallOutputItem{CallID: "c", Output: "a\xffb"},
	} {
		raw, err := protocol.AppendItem(nil, item)
		if err != nil {
			t.Errorf("%s: %v", item.ItemType(), err)
			continue
		}
		if _, err := protocol.ParseItem(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
