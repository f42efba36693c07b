package protocol_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FuzzAppendItem compares what is written directly with what the JSON library writes.
func FuzzAppendItem(f *testing.F) {
	for _, text := range []string{"", "plain", "a\tb\nc\"d\\e\r", "\x00\x1f\x7f<>&", "é \u2028 😀", "\xff\nx", `"`, "\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, item := range []protocol.ResponseItem{
			protocol.FunctionCallItem{Name: text, Arguments: text, CallID: text},
			protocol.FunctionCallOutputItem{CallID: text, Output: text},
			protocol.MessageItem{Role: text, Content: []protocol.ContentItem{{Type: "output_text", Text: "x"}}, Phase: text},
		} {
			body := must.Get(json.Marshal(item, jsontext.AllowInvalidUTF8(true)))(t)
			got := must.Get(protocol.AppendItem([]byte("before "), item))(t)
			must.Equal(t, "item", `before {"type":"`+item.ItemType()+`",`+string(body[1:]), string(got))
		}
	})
}
