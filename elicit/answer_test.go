package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
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
	{6, `{"action":"accept","content":{"allow":"yes"}}`, denied, confused, warn, ""},
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
	{10, `{"decision":"denied"}`, denied, "declined", info, ""}, {10, `{"decision":"abort"}`, abort, "cancelled", info, ""},
	{10, `{"decision":"Approved"}`, denied, confused, warn, ""}, {10, `{"decision":" approved"}`, denied, confused, warn, ""},
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

// TestFormWords checks that what is said of a form that asks for values does not speak of an approval, and that what is said of
// an approval with the form that can only be declined does.
func TestFormWords(t *testing.T) {
	form := &elicit.Question{Message: "Where to?", Schema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`)}
	long := &elicit.Question{Message: strings.Repeat("a long line that does not fit\n", 9)}
	short := long.For(elicit.Client{Name: "claude-code", Capabilities: json.RawMessage(`{"elicitation":{}}`)}, nil)
	if short.Schema == nil {
		t.Fatal("it can be approved")
	}
	outcomes := func(q *elicit.Question) (out []elicit.Outcome) {
		for _, answer := range []string{`{"action":"accept"}`, `{"action":"cancel"}`, `{"action":"x"}`, `{`, `{"action":"accept","content":{"to":1}}`,
			`{"action":"accept","content":{"to":"a"}}`, `{"action":"accept","decision":"denied","content":{"to":"a"}}`} {
			out = append(out, q.Read(json.RawMessage(answer), nil))
		}
		for _, err := range []error{elicit.ErrUnsupported, &jsonrpc.Error{Code: -1}, errors.New("x"), context.DeadlineExceeded} {
			out = append(out, q.ReadError(err, nil))
		}
		return out
	}
	for _, out := range outcomes(form) {
		said := out.ForModel() + " " + out.ForCaller() + " " + out.Detail
		if out.Decision.Approves() != (out.ForModel() == "") || strings.Contains(said, "approv") || strings.Contains(said, "command") {
			t.Errorf("%s: %q", out.Reason, said)
		}
	}
	approvals := 0
	for _, out := range outcomes(short) {
		if strings.Contains(out.ForModel(), "approval") {
			approvals++
		}
	}
	if approvals == 0 {
		t.Error("an approval that can only be declined is called a question")
	}
	if out := form.ReadError(elicit.ErrUnsupported, nil); out.ForCaller() != "This MCP client cannot show questions, so what needs an answer was not done."+hint {
		t.Error(out.ForCaller())
	}
}

const hint = " Use a client that supports elicitation in form mode."

// failures are the rows of the decision table without a result. "%" stands for the clause that says what a refusal means.
var failures = []struct {
	row           int
	err           error
	options       *elicit.Options
	decision      elicit.Decision
	reason        elicit.Reason
	level         slog.Level
	model, caller string
}{
	{14, &jsonrpc.Error{Code: -32601, Message: "Method not found"}, nil, denied, "client_error", warn,
		"the client could not show the approval request (-32601)", "The client could not show the approval request (-32601), so %."},
	{14, fmt.Errorf("call: %w", &jsonrpc.Error{}), nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},
	{14, &jsonrpc.Error{Code: -32603}, &elicit.Options{OnError: "abort"}, abort, "client_error", warn,
		"the client could not show the approval request (-32603)", "The client could not show the approval request (-32603), so %."},
	{14, &jsonrpc.Error{Code: -32602}, &elicit.Options{OnError: "fail-call", Hint: "Try harder."}, abort, "client_error", warn,
		"the client could not show the approval request (-32602)", "The client could not show the approval request (-32602), so %. Try harder."},
	{14, &jsonrpc.Error{Code: 1}, &elicit.Options{OnError: "approve"}, denied, "client_error", warn,
		"the client could not show the approval request (1)", "The client could not show the approval request (1), so %."},
	{14, jsonrpc.ErrFull, nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},
	{14, nil, nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},

	{15, elicit.ErrUnsupported, nil, denied, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "fail-call", Hint: "Set approval-policy to never."}, abort, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done. Set approval-policy to never."},
	{15, elicit.ErrUnsupported, &elicit.Options{Unable: "there is nobody", Hint: "Try harder."}, denied, "unsupported", warn,
		"there is nobody", "There is nobody, so what needs an approval was not done. Try harder."},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "abort"}, abort, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "approve"}, denied, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},

	{16, context.DeadlineExceeded, nil, denied, "timeout", warn, "no answer within 600 s", "No answer within 600 s, so %."},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "abort", Timeout: 1500 * time.Millisecond}, abort, "timeout", warn,
		"no answer within 1.5 s", "No answer within 1.5 s, so %."},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "fail-call", Timeout: 2 * time.Second}, abort, "timeout", warn,
		"no answer within 2 s", "No answer within 2 s, so %." + hint},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "approve"}, denied, "timeout", warn, "no answer within 600 s", "No answer within 600 s, so %."},

	{17, context.Canceled, nil, abort, "interrupted", info, "the turn was interrupted", ""},
	{18, jsonrpc.ErrClosed, nil, abort, "peer_gone", info, "the client is gone", ""},
	{18, io.EOF, nil, abort, "peer_gone", info, "the client is gone", ""},
}

func TestReadErrorTable(t *testing.T) {
	for _, tt := range failures {
		for _, kind := range kinds {
			out := kind.question.ReadError(tt.err, tt.options)
			if out.Decision != tt.decision || out.Reason != tt.reason || out.Level != tt.level {
				t.Errorf("row %d, %s: %v: got %+v", tt.row, kind.name, tt.err, out)
			}
			if got, want := out.ForModel(), tt.model; got != want {
				t.Errorf("row %d, %s: %v: for the model %q, want %q", tt.row, kind.name, tt.err, got, want)
			}
			if got, want := out.ForCaller(), strings.Replace(tt.caller, "%", kind.notDone, 1); got != want {
				t.Errorf("row %d, %s: %v: for the caller %q, want %q", tt.row, kind.name, tt.err, got, want)
			}
			if out.Detail == "" {
				t.Errorf("row %d, %s: %v: nothing for the log", tt.row, kind.name, tt.err)
			}
		}
		if out := elicit.ReadError(tt.err, tt.options); !reflect.DeepEqual(out, kinds[0].question.ReadError(tt.err, tt.options)) {
			t.Errorf("row %d: %v: ReadError differs: %+v", tt.row, tt.err, out)
		}
	}
}

// The message of the client's error is escaped in the log.
func TestReadErrorDetail(t *testing.T) {
	out := elicit.ReadError(&jsonrpc.Error{Code: -1, Message: "no\nway"}, nil)
	if want := "error answer to the approval request: (-1) `\"no\\nway\"`"; out.Detail != want {
		t.Errorf("%s, want %s", out.Detail, want)
	}
	out = elicit.ReadError(errors.New("lost"), nil)
	if want := `the approval request failed: "lost"`; out.Detail != want {
		t.Errorf("%s, want %s", out.Detail, want)
	}
}

// TestAlways reads answers that name a lasting rule. They count only if that client was
// offered the rule, and in one spelling.
func TestAlways(t *testing.T) {
	rule := &elicit.Always{Words: "commands that begin with `git push` in /work, outside the sandbox"}
	form := &elicit.Options{Schema: elicit.FormDecision}
	for _, tt := range []struct {
		name, answer string
		want         elicit.Decision
		reason       elicit.Reason
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

// mayApprove is a second implementation of the decision table. It only finds whether an
// answer approves (rows 1 to 3, 10 and 11), and how.
func mayApprove(result []byte) (yes, forSession bool) {
	var top map[string]any
	if jsonv2.Unmarshal(result, &top) != nil { // nor with duplicates, at any depth
		return false, false
	}
	content, isObject := top["content"].(map[string]any)
	if top["content"] != nil && !isObject {
		return false, false
	}
	for _, object := range []map[string]any{top, content} {
		for name := range object {
			for _, known := range []string{"action", "decision", "content"} {
				if name != known && strings.EqualFold(name, known) {
					return false, false
				}
			}
		}
	}
	var words []string // every decision there is, canonical
	action, acts := top["action"]
	flat, decides := top["decision"]
	switch {
	case acts && action != "accept", !acts && !decides, decides && flat != "approved" && flat != "approved_for_session":
		return false, false
	case decides:
		words = append(words, flat.(string))
	}
	if decision, said := content["decision"]; said {
		text, _ := decision.(string)
		switch strings.Trim(strings.ToLower(text), " \t\r\n") {
		case "approved", "accept", "allow", "yes", "approve":
			words = append(words, "approved")
		case "approved_for_session", "approved-for-session", "approvedforsession", "acceptforsession":
			words = append(words, "approved_for_session")
		default:
			return false, false
		}
	}
	for _, name := range []string{"approved", "approve", "confirm", "confirmed", "allow", "allowed"} {
		if flag, said := content[name]; said && flag != true {
			return false, false
		} else if said {
			words = append(words, "approved")
		}
	}
	return true, len(words) > 0 && !slices.Contains(words, "approved")
}

func FuzzRead(f *testing.F) {
	for _, tt := range answers {
		f.Add([]byte(tt.result))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		out := (&elicit.Question{}).Read(result, nil)
		if !out.Decision.Valid() {
			t.Fatalf("%q: decision %q", result, out.Decision)
		}
		yes, forSession := mayApprove(result)
		switch {
		case out.Decision == approved && !yes, out.Decision == session && !(yes && forSession):
			t.Fatalf("%q: %s, but the table says approve %v, for the session %v", result, out.Decision, yes, forSession)
		case (out.ForModel() == "") != (out.Decision == approved || out.Decision == session):
			t.Fatalf("%q: %s, told the model %q", result, out.Decision, out.ForModel())
		case strings.ContainsAny(out.Detail, "\n\r\x1b") || !utf8.ValidString(out.Detail):
			t.Fatalf("%q: detail %q", result, out.Detail)
		}
		flat := (&elicit.Question{}).Read(result, &elicit.Options{NoLegacyFlat: true})
		if flat.Decision != out.Decision && flat.Decision != denied {
			t.Fatalf("%q: %s without flat answers, %s with them", result, flat.Decision, out.Decision)
		}
		if in := (&elicit.Question{}).ReadInputResponse(result, nil); in.Decision != flat.Decision {
			t.Fatalf("%q: %s in inputResponses, %s without flat answers", result, in.Decision, flat.Decision)
		}
	})
}

// The reference and the reader agree on the whole table, both ways.
func TestReferenceAgrees(t *testing.T) {
	for _, tt := range answers {
		yes, forSession := mayApprove([]byte(tt.result))
		if strings.Contains(tt.result, `"Approved":`) {
			continue // the reference is laxer there
		}
		if want := tt.decision == approved || tt.decision == session; yes != want || forSession != (tt.decision == session) {
			t.Errorf("row %d: %s: reference says %v, for the session %v; want %s", tt.row, tt.result, yes, forSession, tt.decision)
		}
	}
}

// TestAnswersOfThePage reads each answer that approvals.md lists, and finds there each word that counts.
func TestAnswersOfThePage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../docs/approvals.md"))(t))
	source := string(must.Get(os.ReadFile("answer.go"))(t))
	words := func(text, quote string) (all []string) {
		for _, found := range regexp.MustCompile(quote+`(\w[\w-]*)`+quote).FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all
	}
	q := &elicit.Question{Always: &elicit.Always{Words: "it"}}
	check := func(answer string, want elicit.Decision) {
		if out := q.Read(json.RawMessage(answer), &elicit.Options{Schema: elicit.FormDecision}); out.Decision != want || out.Reason == confused {
			t.Errorf("%s is %s (%s), want %s", answer, out.Decision, out.Reason, want)
		}
	}
	decisions := map[string]elicit.Decision{
		"approved, once": approved, "approved for the session": session, "denied": denied, "abort": abort,
		"approved in the sandbox, with the rule; denied if the form did not show it": elicit.ApprovedAlways,
	}
	var listed, flags, beside []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`).FindAllStringSubmatch(page, -1) {
		want, known := decisions[row[2]]
		if rest, ok := strings.CutPrefix(row[1], "`accept` with `content.decision` "); ok {
			must.Equal(t, "the decision of "+row[1]+" is known", true, known)
			for _, word := range words(rest, "`") {
				check(`{"action":"accept","content":{"decision":"`+word+`"}}`, want)
				if listed = append(listed, strings.ToLower(word)); want != elicit.ApprovedAlways {
					check(`{"action":"accept","content":{"decision":" `+strings.ToUpper(word)+`"}}`, want)
				}
			}
		}
		if rest, ok := strings.CutPrefix(row[1], "`accept` with a boolean in `content`: "); ok {
			flags = words(rest, "`")
		}
		if rest, ok := strings.CutPrefix(row[1], "`decision` next to `action`, or alone before 2026-07-28: "); ok {
			beside = words(rest, "`")
		}
	}
	for _, flag := range flags {
		check(`{"action":"accept","content":{"`+flag+`":true}}`, approved)
		check(`{"action":"accept","content":{"`+flag+`":false}}`, denied)
	}
	for _, word := range beside {
		check(`{"decision":"`+word+`"}`, elicit.Decision(word))
		check(`{"action":"accept","decision":"`+word+`"}`, elicit.Decision(word))
	}
	_, spelled, _ := strings.Cut(source, "switch strings.ToLower(word) {")
	spelled, _, _ = strings.Cut(spelled, "default:")
	_, booleans, _ := strings.Cut(source, "var flags = ")
	booleans, _, _ = strings.Cut(booleans, "}")
	slices.Sort(listed)
	must.Equal(t, "the words", slices.Sorted(slices.Values(append(words(spelled, `"`), "approved_always"))), listed)
	must.Equal(t, "the booleans", words(booleans, `"`), flags)
	must.Equal(t, "the exact words", []string{"approved", "approved_for_session", "denied", "abort"}, beside)
}
