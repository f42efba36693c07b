package elicit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestValues reads answers to a form. What does not follow its schema denies, and is not in the log.
func TestValues(t *testing.T) {
	form := json.RawMessage(`{"type":"object","properties":{"env":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
		`"n":{"type":"integer","maximum":3},"list":{"type":"array","items":{"type":"string"}}},"required":["env"]}`)
	for _, tt := range []struct {
		answer string
		want   map[string]any // nil if it denies
	}{
		{`{"action":"accept","content":{"env":"a"}}`, map[string]any{"env": "a"}},
		{`{"action":"accept","content":{"env":"b","n":3,"list":["x"],"more":true}}`, map[string]any{"env": "b", "n": 3.0, "list": []any{"x"}, "more": true}},
		{`{"action":"accept","content":{"env":"a","decision":"approved"}}`, map[string]any{"env": "a", "decision": "approved"}},
		{`{"action":"accept","content":{"env":"secret"}}`, nil},
		{`{"action":"accept","content":{"env":"a","n":4}}`, nil},
		{`{"action":"accept","content":{"env":"a","env":"b"}}`, nil},
		{`{"action":"accept","content":{}}`, nil}, {`{"action":"accept","content":["a"]}`, nil}, {`{"action":"accept"}`, nil},
		{`{"decision":"approved"}`, nil},
		{`{"action":"accept","content":{"env":"a","decision":"denied"}}`, nil},
		{`{"action":"decline","content":{"env":"a"}}`, nil},
	} {
		out := (&elicit.Question{Schema: form}).Read(json.RawMessage(tt.answer), nil)
		if diff := cmp.Diff(tt.want, out.Values); diff != "" || out.Decision.Approves() != (tt.want != nil) || strings.Contains(out.Detail, "secret") {
			t.Errorf("%s: %s, %s (-want +got)\n%s", tt.answer, out.Decision, out.Detail, diff)
		}
	}
	if out := (&elicit.Question{}).Read(json.RawMessage(`{"action":"accept","content":{"env":"a"}}`), nil); out.Values != nil {
		t.Errorf("a question without a form has %v", out.Values)
	}
	if out := (&elicit.Question{Schema: json.RawMessage(`{"type":"objects"}`)}).Read(json.RawMessage(`{"action":"accept"}`), nil); out.Decision.Approves() {
		t.Error("a form that cannot be checked approves")
	}
}
