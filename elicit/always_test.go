package elicit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestAlways reads answers that name a lasting rule. They count only if that client was
// offered the rule, and in one spelling.
func TestAlways(t *testing.T) {
	rule := &elicit.Always{Words: "commands that begin with `git push` in /work, outside the sandbox"}
	form := &elicit.Options{Schema: elicit.FormDecision}
	for _, tt := range []struct {
		name   string
		answer string
		want   elicit.Decision
		reason elicit.Reason
	}{
		{"as offered", `{"action":"accept","content":{"decision":"approved_always"}}`, elicit.ApprovedAlways, ""},
		{"and a boolean", `{"action":"accept","content":{"decision":"approved_always","approved":true}}`, elicit.Approved, ""},
		{"and a plain decision", `{"action":"accept","decision":"approved","content":{"decision":"approved_always"}}`, elicit.Approved, ""},
		{"another spelling", `{"action":"accept","content":{"decision":"Approved_Always"}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"with dashes", `{"action":"accept","content":{"decision":"approved-always"}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"always", `{"action":"accept","content":{"decision":"always"}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"flat", `{"decision":"approved_always"}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"next to the action", `{"action":"accept","decision":"approved_always"}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"twice", `{"action":"accept","content":{"decision":"approved","decision":"approved_always"}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"in capitals too", `{"action":"accept","content":{"decision":"approved_always","Decision":"approved_always"}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"a list", `{"action":"accept","content":{"decision":["approved_always"]}}`, elicit.Denied, elicit.ReasonNotUnderstood},
		{"declined", `{"action":"decline","content":{"decision":"approved_always"}}`, elicit.Denied, elicit.ReasonDeclined},
		{"cancelled", `{"action":"cancel","content":{"decision":"approved_always"}}`, elicit.Abort, elicit.ReasonCancelled},
	} {
		q := &elicit.Question{Message: "Sure?", Always: rule}
		for name, out := range map[string]elicit.Outcome{
			"Read": q.Read([]byte(tt.answer), form), "ReadInputResponse": q.ReadInputResponse([]byte(tt.answer), form),
		} {
			if out.Decision != tt.want || out.Reason != tt.reason {
				t.Errorf("%s: %s: %s %s, want %s %s", tt.name, name, out.Decision, out.Reason, tt.want, tt.reason)
			}
		}
	}

	const always = `{"action":"accept","content":{"decision":"approved_always"}}`
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`), ProtocolVersion: "2025-06-18"}
	for _, tt := range []struct {
		name     string
		question *elicit.Question
		form     elicit.Form
		want     elicit.Decision
	}{
		{"offered", &elicit.Question{Always: rule}, elicit.FormDecision, elicit.ApprovedAlways},
		{"offered in both formats", &elicit.Question{Always: rule}, elicit.FormDecisionBoth, elicit.ApprovedAlways},
		{"offered, and not for the session", &elicit.Question{Always: rule, Once: true}, elicit.FormDecision, elicit.ApprovedAlways},
		{"not offered", &elicit.Question{}, elicit.FormDecision, elicit.Denied},
		{"a form without it", &elicit.Question{Always: rule}, elicit.FormEmpty, elicit.Denied},
		{"a client not known to show it", &elicit.Question{Always: rule}, elicit.FormAuto, elicit.Denied},
		{"a schema of the program's own", &elicit.Question{Always: rule, Schema: json.RawMessage(`{"type":"object","properties":{}}`)}, elicit.FormDecision, elicit.Denied},
	} {
		var sent string
		call := func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			sent = string(params)
			return json.RawMessage(always), nil
		}
		out := elicit.NewAsker(elicit.CallFunc(call), able, &elicit.Options{Schema: tt.form}).Ask(t.Context(), tt.question)
		if out.Decision != tt.want || (out.Decision == elicit.Denied) != (out.Reason == elicit.ReasonNotUnderstood) {
			t.Errorf("%s: %s %s (%s)", tt.name, out.Decision, out.Reason, out.Detail)
		}
		if shown := strings.Contains(sent, "Always allow commands that begin with `git push` in /work, outside the sandbox"); shown != (tt.want == elicit.ApprovedAlways) {
			t.Errorf("%s: the client was sent %s", tt.name, sent)
		}
		o := &elicit.Options{Schema: tt.form}
		if out := tt.question.For(able, o).ReadInputResponse([]byte(always), o); out.Decision != tt.want {
			t.Errorf("%s, in a result: %s", tt.name, out.Decision)
		}
	}
}

// TestAlwaysIsShownOnOneLine escapes what a rule's words have from a model.
func TestAlwaysIsShownOnOneLine(t *testing.T) {
	q := &elicit.Question{Always: &elicit.Always{Words: "x\"\u202e\n{"}}
	params, err := q.Params(elicit.Client{}, &elicit.Options{Schema: elicit.FormDecisionBoth})
	if err != nil || !strings.Contains(string(params), `Always allow x\"\\u{202e} {`) {
		t.Errorf("%s, %v", params, err)
	}
}
