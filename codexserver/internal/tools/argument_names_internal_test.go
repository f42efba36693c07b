package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// TestWaitNames checks that codex-wait refuses unknown arguments.
func TestWaitNames(t *testing.T) {
	table := New(engine.TurnFunc(nil), nil)
	for arguments, want := range map[string]string{
		`{"second":1}`: "did you mean seconds?", `{"Seconds":1}`: "did you mean seconds?", `{"seconds":1,"x/y":[]}`: "/x~1y: the arguments are",
	} {
		text := Texts(table.Call(t.Context(), &Call{Shared: true}, "codex-wait", json.RawMessage(arguments)))[0]
		if !strings.HasPrefix(text, "codex-wait: unknown argument /") || !strings.Contains(text, want) || strings.HasSuffix(want, "are") && !strings.Contains(text, "threadIds") {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if text := Texts(table.Call(t.Context(), &Call{Shared: true}, "codex-wait", json.RawMessage(`{"seconds":0,"more":null}`)))[0]; strings.Contains(text, "unknown argument") {
		t.Errorf("null: %s", text)
	}
}
