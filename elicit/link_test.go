package elicit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

func TestCanOpen(t *testing.T) {
	for _, tt := range []struct {
		version, capabilities string
		want                  bool
	}{
		{"2025-11-25", `{"elicitation":{"url":{}}}`, true},
		{"2026-07-28", `{"elicitation":{"form":{},"url":{}}}`, true},
		{"2025-11-25", `{"elicitation":{"url":{"x":1}}}`, true},
		{"2025-06-18", `{"elicitation":{"url":{}}}`, false},
		{"", `{"elicitation":{"url":{}}}`, false},
		{"2025-11-25", `{"elicitation":{}}`, false},
		{"2025-11-25", `{"elicitation":{"form":{}}}`, false},
		{"2025-11-25", `{"elicitation":{"url":null}}`, false},
		{"2025-11-25", `{"elicitation":{"url":true}}`, false},
		{"2025-11-25", `{"elicitation":{"url":{},"url":{}}}`, false},
		{"2025-11-25", `{"elicitation":null}`, false},
		{"2025-11-25", `{"url":{}}`, false},
		{"2025-11-25", `[]`, false},
		{"2025-11-25", ``, false},
	} {
		if got := (elicit.Client{Capabilities: json.RawMessage(tt.capabilities), ProtocolVersion: tt.version}).CanOpen(); got != tt.want {
			t.Errorf("%s %s: %t", tt.version, tt.capabilities, got)
		}
	}
}

func TestLinkParams(t *testing.T) {
	const linkIntro, asks = "Open the link to decide. Opening it approves nothing.", "Allow Codex to run `git push` in `/work`?"
	exec := elicit.ExecQuestion{Command: []string{"git", "push"}, Cwd: "/work"}
	q := exec.Question()
	q.Link = &elicit.Link{URL: "http://127.0.0.1:1/#x", ID: "7"}
	q.Extra, q.Meta = map[string]any{"codex_command": "git"}, map[string]any{"m": 1}
	short := elicit.Question{Message: "1", Link: q.Link}
	lines := elicit.Question{Message: "1\n2\n3\n4\n5", Link: q.Link}
	for _, tt := range []struct {
		name string
		q    *elicit.Question
		c    elicit.Client
		want string
	}{
		{"2025-11-25", q, elicit.Client{ProtocolVersion: "2025-11-25"}, `{"mode":"url","elicitationId":"7","url":"http://127.0.0.1:1/#x","message":"` + linkIntro + `\n` + asks + `","_meta":{"m":1}}`},
		{"2026-07-28", q, elicit.Client{ProtocolVersion: "2026-07-28"}, `{"mode":"url","url":"http://127.0.0.1:1/#x","message":"` + linkIntro + `\n` + asks + `","_meta":{"m":1}}`},
		{"not cut", &lines, elicit.Client{ProtocolVersion: "2026-07-28"}, `{"mode":"url","url":"http://127.0.0.1:1/#x","message":"` + linkIntro + `\n1\n2\n3\n4\n5"}`},
		{"brief, short", &short, elicit.Client{ProtocolVersion: "2026-07-28", Name: "claude-code"}, `{"mode":"url","url":"http://127.0.0.1:1/#x","message":"` + linkIntro + `\n1"}`},
		{"brief", &lines, elicit.Client{ProtocolVersion: "2026-07-28", Name: "claude-code"}, `{"mode":"url","url":"http://127.0.0.1:1/#x","message":"` + linkIntro + `\n1\n2\n3"}`},
	} {
		raw, err := tt.q.Params(tt.c, nil)
		var got, want any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || json.Unmarshal(raw, &got) != nil {
			t.Fatal(tt.name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestLinkApprovesNothing gives every kind of answer to a question that is asked by a link.
func TestLinkApprovesNothing(t *testing.T) {
	const accepts = `{"action":"accept","content":{"decision":`
	for answer, want := range map[string]string{
		`{"action":"accept"}`:                        "denied opened",
		`{"action":"accept","content":null}`:         "denied opened",
		`{"decision":"approved"}`:                    "denied opened",
		`{"decision":"approved_for_session"}`:        "denied opened",
		accepts + `"approved"}}`:                     "denied opened",
		accepts + `"approved_for_session"}}`:         "denied opened",
		accepts + `"approved_always"}}`:              "denied opened",
		accepts + `"denied"}}`:                       "denied declined",
		accepts + `"abort"}}`:                        "abort cancelled",
		accepts + `"x"}}`:                            "denied not_understood",
		`{"action":"decline"}`:                       "denied declined",
		`{"action":"decline","decision":"approved"}`: "denied declined",
		`{"action":"cancel"}`:                        "abort cancelled",
		`{"action":"open"}`:                          "denied not_understood",
		`{}`:                                         "denied not_understood",
		`null`:                                       "denied not_understood",
	} {
		q := &elicit.Question{Link: &elicit.Link{}, Always: &elicit.Always{Words: "all"}}
		for _, o := range []*elicit.Options{nil, {OnUnsupported: elicit.PolicyAbort, OnCancel: elicit.PolicyAbort}} {
			out := q.Read(json.RawMessage(answer), o)
			if got := string(out.Decision) + " " + string(out.Reason); got != want {
				t.Errorf("%s: %s, want %s", answer, got, want)
			}
			if out.Reason == elicit.ReasonOpened && (out.ForCaller() == "" || strings.Contains(out.ForModel(), "declined")) {
				t.Errorf("%s: %q, %q", answer, out.ForCaller(), out.ForModel())
			}
			if again := q.ReadInputResponse(json.RawMessage(answer), o); again.Decision.Approves() {
				t.Errorf("%s approves in inputResponses", answer)
			}
		}
	}
}

// TestAskByLink asks clients by a link, and by a form, that declare one of them.
func TestAskByLink(t *testing.T) {
	for _, tt := range []struct {
		capabilities string
		link         bool
		want         elicit.Reason
	}{
		{`{"elicitation":{"url":{}}}`, true, elicit.ReasonOpened},
		{`{"elicitation":{"url":{}}}`, false, elicit.ReasonUnsupported},
		{`{"elicitation":{"form":{}}}`, true, elicit.ReasonUnsupported},
		{`{"elicitation":{"form":{}}}`, false, ""},
		{`{"elicitation":{"form":{},"url":{}}}`, true, elicit.ReasonOpened},
		{`{"elicitation":{"form":{},"url":{}}}`, false, ""},
	} {
		sent := false
		ask := elicit.NewAsker(elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			sent = true
			return json.RawMessage(`{"action":"accept"}`), nil
		}), elicit.Client{Capabilities: json.RawMessage(tt.capabilities), ProtocolVersion: "2025-11-25"}, nil)
		q := &elicit.Question{Message: "?"}
		if tt.link {
			q.Link = &elicit.Link{URL: "http://127.0.0.1:1/#x", ID: "7"}
		}
		out := ask.Ask(t.Context(), q)
		if out.Reason != tt.want || sent == (tt.want == elicit.ReasonUnsupported) || out.Decision.Approves() != (tt.want == "") {
			t.Errorf("%s, by a link %t: %+v, sent %t", tt.capabilities, tt.link, out, sent)
		}
	}
}
