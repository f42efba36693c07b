package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestArgumentsAsAText has clients that send all arguments as one text with JSON, in both eras. Other texts are
// refused.
func TestArgumentsAsAText(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
	for _, meta := range []string{"", `,"_meta":{` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":{}}`} {
		for arguments, answered := range map[string]bool{
			`"{\"prompt\": \"hello\"}"`: true, `" {\"prompt\":\"hello\"}\n"`: true, `{"prompt":"hello"}`: true,
			`"hello"`: false, `""`: false, `"[]"`: false, `"{\"prompt\":\"hello\"} x"`: false, `"{\"prompt\":\"a\",\"prompt\":\"hello\"}"`: false, `[{"prompt":"hello"}]`: false,
		} {
			var result struct {
				IsError bool `json:"isError"`
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			}
			err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":`+arguments+meta+`}`), &result)
			if ok := err == nil && !result.IsError && len(result.Content) > 0 && strings.Contains(result.Content[0].Text, "hello"); ok != answered {
				t.Errorf("%s%s: %+v, %v", arguments, meta, result, err)
			}
		}
	}
}
