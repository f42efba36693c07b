package mcptool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestWaitNames checks that codex-wait refuses unknown arguments in both of its forms.
func TestWaitNames(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Call, json.RawMessage) *mcptypes.CallToolResult{
		"threadIds": callWait, "seconds": callDecide,
	} {
		for _, arguments := range []string{`{"second":1}`, `{"Seconds":1}`, `{"seconds":1,"thread/Ids":[]}`} {
			result := call(t.Context(), &Call{Shared: true}, json.RawMessage(arguments))
			text, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "codex-wait: unknown argument /") || !strings.Contains(string(text), name) {
				t.Errorf("%s: %s", arguments, text)
			}
		}
		text, err := json.Marshal(call(t.Context(), &Call{Shared: true}, json.RawMessage(`{"seconds":0,"more":null}`)))
		if err != nil || strings.Contains(string(text), "unknown argument") {
			t.Errorf("null: %s, %v", text, err)
		}
	}
}
