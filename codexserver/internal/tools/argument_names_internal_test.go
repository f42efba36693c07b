package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/go-json-experiment/json/jsontext"
)

// TestUnknownNames checks which tools refuse unknown arguments.
func TestUnknownNames(t *testing.T) {
	table, turns := New(engine.TurnFunc(nil), nil), NewSharedTurns(t.Context(), nil)
	for arguments, want := range map[string]string{
		`{"second":1}`: "did you mean seconds?", `{"Seconds":1}`: "did you mean seconds?", `{"seconds":1,"x/y":[]}`: "/x~1y: the arguments are",
	} {
		text := Texts(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(arguments)))[0]
		if !strings.HasPrefix(text, "codex-wait: unknown argument /") || !strings.Contains(text, want) || strings.HasSuffix(want, "are") && !strings.Contains(text, "threadIds") {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if text := Texts(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(`{"seconds":0,"more":null}`)))[0]; !strings.Contains(text, "argument /threadIds is missing: several clients share") {
		t.Errorf("null: %s", text)
	}
	for _, one := range all {
		in, err := one.input()
		if err != nil {
			t.Fatal(err)
		}
		refused := slices.Contains([]string{"codex", "codex-list", "codex-review", "codex-show", "codex-wait"}, one.name)
		if err := in.members("", map[string]jsontext.Value{"nosuch": jsontext.Value("1")}, one.open); (err != nil) != refused {
			t.Errorf("%s with an unknown argument: %v", one.name, err)
		}
		for name := range in.Properties {
			misspelt := strings.ToUpper(name)
			if err := in.members("", map[string]jsontext.Value{misspelt: jsontext.Value("1")}, one.open); err == nil || !strings.Contains(err.Error(), "did you mean "+name+"?") {
				t.Errorf("%s with %s: %v", one.name, misspelt, err)
			}
		}
	}
}
