package elicit_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
)

// kinds has a question of each kind and the clause for its refusal.
var kinds = []struct {
	name     string
	question *elicit.Question
	notDone  string
}{
	{"exec", new(elicit.Question), "the command was not run"},
	{"patch", &elicit.Question{NotDone: "the changes were not applied"}, "the changes were not applied"},
}

const (
	approved = elicit.Approved
	session  = elicit.ApprovedForSession
	denied   = elicit.Denied
	abort    = elicit.Abort

	debug = slog.LevelDebug
	info  = slog.LevelInfo
	warn  = slog.LevelWarn

	confused = "not_understood"
)

// answers are the rows of the decision table that concern a result.
var answers = []struct {
	row      int
	result   string
	decision elicit.Decision
	reason   elicit.Reason
	level    slog.Level
	feedback string
}{
	// Duplicates, and members that differ only by case.
	{0, `{"action":"accept","action":"accept"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","action":"decline"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","\u0061ction":"accept"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","content":{"decision":"approved","decision":"approved"}}`, denied, confused, warn, ""},
	{0, `{"action":"accept","content":{"x":{"y":1,"y":2}}}`, denied, confused, warn, ""},
	{0, `{"action":"decline","Action":"accept"}`, denied, confused, warn, ""},
	{0, `{"Action":"accept"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","Decision":"approved"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","deciſion":"denied"}`, denied, confused, warn, ""},
	{0, `{"action":"accept","content":{"decision":"denied","Decision":"approved"}}`, denied, confused, warn, ""},

	// accept alone.
	{1, `{"action":"accept"}`, approved, "", debug, ""},
	{1, `{"action":"accept","content":{}}`, approved, "", debug, ""},
	{1, `{"action":"accept","content":null}`, approved, "", debug, ""},
	{1, `{"action":"accept","content":{"colour":"red","n":[{"decision":"denied"}]}}`, approved, "", debug, ""},
	{1, `{"action":"accept","_meta":{"Action":"x","Decision":1},"resultType":"complete"}`, approved, "", debug, ""},
	{1, ` { "action" : "accept" } `, approved, "", debug, ""},

	// accept with a decision.
	{2, `{"action":"accept","content":{"decision":"approved"}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"decision":" Approve\n"}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"decision":"accept"}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"decision":"ALLOW"}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"decision":"yes"}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"approved":true}}`, approved, "", debug, ""},
	{2, `{"action":"accept","content":{"allowed":true,"decision":"approved"}}`, approved, "", debug, ""},
	{3, `{"action":"accept","content":{"decision":"approved_for_session"}}`, session, "", info, ""},
	{3, `{"action":"accept","content":{"decision":"approvedForSession"}}`, session, "", info, ""},
	{3, `{"action":"accept","content":{"decision":"approved-for-session"}}`, session, "", info, ""},
	{3, `{"action":"accept","content":{"decision":"acceptForSession"}}`, session, "", info, ""},
	{4, `{"action":"accept","content":{"decision":"denied"}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"decision":"denied","feedback":" use make "}}`, denied, "declined", info, "use make"},
	{4, `{"action":"accept","content":{"decision":"deny"}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"decision":"Decline"}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"decision":"no"}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"decision":"reject"}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"approved":false}}`, denied, "declined", info, ""},
	{4, `{"action":"accept","content":{"Approved":false}}`, denied, "declined", info, ""},
	{5, `{"action":"accept","content":{"decision":"abort"}}`, abort, "cancelled", info, ""},
	{5, `{"action":"accept","content":{"decision":"cancel","feedback":"stop"}}`, abort, "cancelled", info, "stop"},

	// accept with an unreadable decision.
	{6, `{"action":"accept","content":{"decision":"perhaps"}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":"Approved!"}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":"\u00a0approved"}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":"approved\u200b"}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":"approved for session"}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":null}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"decision":["approved"]}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":{"approved":null}}`, denied, confused, warn, ""},
	{6, `{"action":"accept","content":"approved"}`, denied, confused, warn, ""},

	// decline and cancel.
	{7, `{"action":"decline"}`, denied, "declined", info, ""},
	{7, `{"action":"decline","content":{"feedback":"use make"}}`, denied, "declined", info, "use make"},
	{7, `{"action":"decline","content":{"feedback":7}}`, denied, "declined", info, ""},
	{7, `{"action":"decline","content":{"decision":"abort"}}`, denied, "declined", info, ""},
	{7, `{"action":"decline","decision":"abort"}`, denied, "declined", info, ""},
	{7, `{"action":"decline","content":"approved"}`, denied, "declined", info, ""},
	{8, `{"action":"cancel"}`, abort, "cancelled", info, ""},
	{8, `{"action":"cancel","content":{"decision":"denied"}}`, abort, "cancelled", info, ""},
	{8, `{"action":"cancel","content":[]}`, abort, "cancelled", info, ""},

	// Another action.
	{9, `{"action":"Accept"}`, denied, confused, warn, ""},
	{9, `{"action":"accept "}`, denied, confused, warn, ""},
	{9, `{"action":"sure","decision":"approved"}`, denied, confused, warn, ""},
	{9, `{"action":null,"decision":"approved"}`, denied, confused, warn, ""},
	{9, `{"action":["accept"],"decision":"abort"}`, denied, confused, warn, ""},

	// No action: the flat answer.
	{10, `{"decision":"approved"}`, approved, "", info, ""},
	{10, `{"decision":"approved","content":{}}`, approved, "", info, ""},
	{10, `{"decision":"approved_for_session"}`, session, "", info, ""},
	{10, `{"decision":"denied"}`, denied, "declined", info, ""},
	{10, `{"decision":"abort"}`, abort, "cancelled", info, ""},
	{10, `{"decision":"Approved"}`, denied, confused, warn, ""},
	{10, `{"decision":" approved"}`, denied, confused, warn, ""},
	{10, `{"decision":"cancel"}`, denied, confused, warn, ""},
	{10, `{"decision":"approvedForSession"}`, denied, confused, warn, ""},
	{10, `{"decision":null}`, denied, confused, warn, ""},
	{10, `{"decision":"approved","content":{"decision":"denied"}}`, denied, "declined", warn, ""},
	{10, `{"decision":"approved","content":"no"}`, denied, confused, warn, ""},

	// Both at once.
	{11, `{"action":"accept","decision":"approved"}`, approved, "", info, ""},
	{11, `{"action":"accept","content":{},"decision":"approved"}`, approved, "", info, ""},
	{11, `{"action":"accept","content":{"feedback":"x"},"decision":"denied"}`, denied, "declined", info, "x"},
	{11, `{"action":"accept","decision":"approved_for_session"}`, session, "", info, ""},
	{11, `{"action":"accept","decision":"abort"}`, abort, "cancelled", info, ""},
	{11, `{"action":"accept","decision":"Approved"}`, denied, confused, warn, ""},
	{11, `{"action":"accept","decision":null}`, denied, confused, warn, ""},
	{11, `{"action":"accept","content":{"decision":"approved"},"decision":"approved"}`, approved, "", info, ""},

	// Contradictions.
	{12, `{"action":"accept","content":{"decision":"approved"},"decision":"denied"}`, denied, "declined", warn, ""},
	{12, `{"action":"accept","content":{"decision":"denied"},"decision":"approved"}`, denied, "declined", warn, ""},
	{12, `{"action":"accept","content":{"decision":"denied"},"decision":"abort"}`, abort, "cancelled", warn, ""},
	{12, `{"action":"accept","content":{"decision":"abort"},"decision":"approved"}`, abort, "cancelled", warn, ""},
	{12, `{"action":"accept","content":{"decision":"approved_for_session"},"decision":"approved"}`, approved, "", warn, ""},
	{12, `{"action":"accept","content":{"decision":"approved"},"decision":"approved_for_session"}`, approved, "", warn, ""},
	{12, `{"action":"accept","content":{"decision":"perhaps"},"decision":"approved"}`, denied, confused, warn, ""},
	{12, `{"action":"accept","content":{"decision":"approved"},"decision":7}`, denied, confused, warn, ""},
	{12, `{"action":"accept","content":{"decision":"perhaps"},"decision":"abort"}`, abort, "cancelled", warn, ""},
	{12, `{"action":"accept","content":{"decision":"approved","approved":false}}`, denied, "declined", warn, ""},
	{12, `{"action":"accept","content":{"allow":true,"confirm":false}}`, denied, "declined", warn, ""},
	{12, `{"action":"accept","content":{"approved":true,"Approved":false}}`, denied, "declined", warn, ""},
	{12, `{"action":"decline","content":{"decision":"approved"}}`, denied, "declined", warn, ""},
	{12, `{"action":"decline","decision":"approved"}`, denied, "declined", warn, ""},
	{12, `{"action":"decline","decision":"approved_for_session","content":{"feedback":"no"}}`, denied, "declined", warn, "no"},
	{12, `{"action":"cancel","decision":"approved"}`, abort, "cancelled", warn, ""},
	{12, `{"action":"cancel","content":{"allow":true}}`, abort, "cancelled", warn, ""},

	// No answer at all.
	{13, `{}`, denied, confused, warn, ""},
	{13, `{"content":{"decision":"approved"}}`, denied, confused, warn, ""},
	{13, `{"approved":true}`, denied, confused, warn, ""},
	{13, `{"result":{"action":"accept"}}`, denied, confused, warn, ""},
	{13, `null`, denied, confused, warn, ""}, {13, `[]`, denied, confused, warn, ""}, {13, `"approved"`, denied, confused, warn, ""},
	{13, ``, denied, confused, warn, ""}, {13, `{`, denied, confused, warn, ""},
	{13, `{"action":"accept"} {}`, denied, confused, warn, ""},
	{13, `{'action':'accept'}`, denied, confused, warn, ""},
	{13, "{\"action\":\"accept\",\"x\":\"\xff\"}", denied, confused, warn, ""},
	{13, `{"action":"accept","x":"\ud800"}`, denied, confused, warn, ""},
	{13, "\ufeff" + `{"action":"accept"}`, denied, confused, warn, ""},
}

func TestReadTable(t *testing.T) {
	seen := make(map[int]bool)
	for _, tt := range answers {
		seen[tt.row] = true
		for _, kind := range kinds {
			out := kind.question.Read(json.RawMessage(tt.result), nil)
			if out.Decision != tt.decision || out.Reason != tt.reason || out.Level != tt.level || out.Feedback != tt.feedback {
				t.Errorf("row %d, %s: %s\n got %s, reason %q, level %v, feedback %q\nwant %s, reason %q, level %v, feedback %q", tt.row, kind.name, tt.result,
					out.Decision, out.Reason, out.Level, out.Feedback, tt.decision, tt.reason, tt.level, tt.feedback)
			}
			if want := forModel(tt.decision, tt.reason, tt.feedback, tt.result); out.ForModel() != want {
				t.Errorf("row %d, %s: %s: for the model %q, want %q", tt.row, kind.name, tt.result, out.ForModel(), want)
			}
			if out.ForCaller() != "" || out.Detail == "" {
				t.Errorf("row %d, %s: %s: for the caller %q, detail %q", tt.row, kind.name, tt.result, out.ForCaller(), out.Detail)
			}
		}
	}
	for row := range 14 {
		if !seen[row] {
			t.Errorf("row %d has no case", row)
		}
	}
}

// forModel is the model's text according to the table.
func forModel(d elicit.Decision, reason elicit.Reason, feedback, result string) string {
	switch {
	case d == approved || d == session:
		return ""
	case reason == confused:
		return "the approval answer was not understood"
	case d == denied && feedback == "":
		return "declined"
	case d == denied:
		return "declined: " + feedback
	case strings.Contains(result, `"action":"cancel"`):
		return "the client cancelled the approval request"
	}
	return "the client chose to abort the turn"
}

// TestReadOptions has options that decide, and questions that do not offer an approval for the session:
// they take one as plain.
func TestReadOptions(t *testing.T) {
	for _, tt := range []struct {
		name, result string
		options      elicit.Options
		want         elicit.Decision
		level        slog.Level
	}{
		{"once, flat", `{"decision":"approved_for_session"}`, elicit.Options{}, approved, info},
		{"once, for the session", `{"action":"accept","content":{"decision":"approved_for_session"}}`, elicit.Options{}, approved, info},
		{"once, abort", `{"action":"accept","content":{"decision":"abort"}}`, elicit.Options{}, abort, info},
		{"once, declined", `{"action":"decline","content":{"decision":"approved_for_session"}}`, elicit.Options{}, denied, warn},
		{"once, contradiction", `{"action":"accept","decision":"approved_for_session","content":{"allow":1}}`, elicit.Options{}, denied, warn},
		{"cancel denies", `{"action":"cancel"}`, elicit.Options{OnCancel: "deny"}, denied, info},
		{"cancel denies, contradiction", `{"action":"cancel","decision":"approved"}`, elicit.Options{OnCancel: "deny"}, denied, warn},
		{"cancel aborts", `{"action":"cancel"}`, elicit.Options{OnCancel: "abort"}, abort, info},
		{"cancel, unknown policy", `{"action":"cancel"}`, elicit.Options{OnCancel: "approve"}, abort, info},
		{"no flat approval", `{"decision":"approved"}`, elicit.Options{NoLegacyFlat: true}, denied, warn},
		{"no flat abort", `{"decision":"abort"}`, elicit.Options{NoLegacyFlat: true}, denied, warn},
		{"both still restrict", `{"action":"accept","decision":"denied"}`, elicit.Options{NoLegacyFlat: true}, denied, info},
		{"compliant", `{"action":"accept"}`, elicit.Options{NoLegacyFlat: true}, approved, debug},
	} {
		out := (&elicit.Question{Once: strings.HasPrefix(tt.name, "once")}).Read(json.RawMessage(tt.result), &tt.options)
		if out.Decision != tt.want || out.Level != tt.level {
			t.Errorf("%s: %s at %v, want %s at %v", tt.name, out.Decision, out.Level, tt.want, tt.level)
		}
	}
}

// The log has the names of an answer's members, never their values.
func TestReadDetail(t *testing.T) {
	for _, tt := range []struct{ result, detail string }{
		{`{"b":"secret","a":"secret"}`, `approval answer not understood: no action or decision in {"a", "b"}`},
		{`{"action":"x","content":{"decision":"secret"}}`, `approval answer not understood: an unknown action in {"action", "content"} content {"decision"}`},
		{`{"action":"accept","content":{"decision":"secret"}}`, `approval answer not understood: an unknown decision in {"action", "content"} content {"decision"}`},
		{`{"action":"accept","action":"secret"}`, `approval answer not understood: a duplicate member`},
		{`{"Action":"secret"}`, `approval answer not understood: a member that differs only by case in {"Action"}`},
		{`{"\u001b[31m":1}`, `approval answer not understood: no action or decision in {"\x1b[31m"}`},
		{`["secret"]`, `approval answer not understood: not an object`},
		{`{"secret`, `approval answer not understood: not valid JSON in UTF-8`},
		{`{"01":0,"02":0,"03":0,"04":0,"05":0,"06":0,"07":0,"08":0,"09":0,"10":0,"11":0,"12":0,"13":0,"14":0}`,
			`approval answer not understood: no action or decision in {"01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", 2 more}`},
		{`{"action":"decline","decision":"approved"}`, `declined by the client, although {"action", "decision"} has an approving decision`},
		{`{"action":"accept","content":{"decision":"approved"},"decision":"denied"}`, `contradictory approval answer, the most restrictive part counts: {"action", "content", "decision"} content {"decision"}`},
	} {
		if out := (&elicit.Question{}).Read(json.RawMessage(tt.result), nil); out.Detail != tt.detail {
			t.Errorf("%s\n got %s\nwant %s", tt.result, out.Detail, tt.detail)
		}
	}
}

func TestReadLongFeedback(t *testing.T) {
	out := (&elicit.Question{}).Read(json.RawMessage(`{"action":"decline","content":{"feedback":"`+strings.Repeat("é", 3000)+`"}}`), nil)
	if want := strings.Repeat("é", 2000) + "… (1,000 characters hidden) …"; out.Feedback != want {
		t.Errorf("feedback of %d bytes: …%s", len(out.Feedback), out.Feedback[len(out.Feedback)-60:])
	}
}

// TestDecisions has every decision, from the least strict to the strictest, and words that are none.
func TestDecisions(t *testing.T) {
	order := []elicit.Decision{"", elicit.ApprovedAlways, session, approved, denied, abort}
	for i, d := range order {
		if d.Valid() != (i > 0) || d.Approves() != (1 <= i && i <= 3) {
			t.Errorf("%q: valid %t, approves %t", d, d.Valid(), d.Approves())
		}
		for j, other := range order {
			if d.Stricter(other) != (i > j) {
				t.Errorf("%q stricter than %q: %v", d, other, !(i > j))
			}
		}
	}
	for _, d := range []elicit.Decision{"Approved", "yes", "approved "} {
		if d.Valid() {
			t.Errorf("%q is valid", d)
		}
	}
}

// TestFlagsRefuse checks that each boolean that hosts use for a confirmation also refuses.
func TestFlagsRefuse(t *testing.T) {
	for _, flag := range []string{"approved", "approve", "confirm", "confirmed", "allow", "allowed"} {
		for value, want := range map[string]elicit.Decision{"true": approved, "false": denied, `"yes"`: denied, "null": denied} {
			answer := fmt.Sprintf(`{"action":"accept","content":{%q:%s}}`, flag, value)
			if out := kinds[0].question.Read(json.RawMessage(answer), nil); out.Decision != want {
				t.Errorf("%s: %s", answer, out.Decision)
			}
		}
	}
}
