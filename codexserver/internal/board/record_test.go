package board_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRecordFails checks that an approval that cannot be recorded does not count, and that the
// failure is logged and told.
func TestRecordFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		record *board.Record
		event  protocol.EventMsg
		want   string
	}{
		{"no writer", board.NewRecord(nil), request().Event, ""},
		{"a writer that fails", board.NewRecord(brokenWriter{}), request().Event, "error=broken"},
		{"an event with a member that is no JSON", board.NewRecord(&strings.Builder{}), protocol.SessionConfigured{InitialMessages: []json.RawMessage{[]byte(`{`)}}, "not recorded"},
		{"an event that is no JSON", board.NewRecord(&strings.Builder{}), protocol.RawEvent{Type: "x", Raw: []byte(`{`)}, "not recorded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log servertest.Journal
			b := board.New(&board.Options{Record: tt.record, Logger: log.Logger()}, nil)
			defer b.Attach(newClient(servertest.Say(servertest.Accept), nil))()
			r := request()
			r.Event = tt.event
			want := elicit.Approved
			if tt.want != "" {
				want = elicit.Denied
			}
			got := b.Decide(t.Context(), r)
			if told := strings.Contains(got.ForModel()+strings.Join(got.Remarks, ""), "could not be recorded"); got.Decision != want || told != (tt.want != "") {
				t.Errorf("decided %q, %q, %q", got.Decision, got.ForModel(), got.Remarks)
			}
			if noted := strings.Contains(log.String(), "not recorded"); noted != (tt.want != "") || !strings.Contains(log.String(), tt.want) {
				t.Errorf("logged %s", &log)
			}
		})
	}
}

// TestDenialIsNotRecorded checks that a denial stays what it is when it cannot be recorded, and
// what an approval becomes.
func TestDenialIsNotRecorded(t *testing.T) {
	words := "the approval could not be recorded, so it does not count: broken"
	for answer, want := range map[string]approval.Decision{
		servertest.Decline: {Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Detail: "declined by the client"}},
		servertest.Cancel:  {Outcome: elicit.Outcome{Decision: elicit.Abort, Reason: elicit.ReasonCancelled, Detail: "cancelled by the client"}},
		servertest.ForSession: {
			Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: words, Detail: words, Level: slog.LevelWarn},
			Remarks: []string{"Nothing was run: " + words + "."},
		},
	} {
		b := board.New(&board.Options{Record: board.NewRecord(brokenWriter{})}, nil)
		leave := b.Attach(newClient(servertest.Say(answer), nil))
		got := b.Decide(t.Context(), request())
		leave()
		want.By = approval.ByClient
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(elicit.Outcome{}), cmpopts.IgnoreFields(elicit.Outcome{}, "Took")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
}

// TestStamp takes lines that another process wrote: its time and its principal do not count, and it
// names no other approver.
func TestStamp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	const made = `{"time":"2020-01-01T00:00:00Z","threadId":"t","principal":"eve","question":{"type":"x"},"decision":"approved","by":"approver","approver":"bob","rule":7,"feedback":"é"}`
	const stamped = `{"time":"2026-01-02T02:04:05Z","threadId":"t","principal":"ann","question":{"type":"x"},"decision":"approved","by":"approver","approver":"bob","rule":7,"feedback":"é"}`
	for _, tt := range []struct{ from, to, want string }{
		{"", "", stamped},
		{`,"approver":"bob"`, ``, strings.Replace(stamped, `,"approver":"bob"`, "", 1)},
		{`"bob"`, `"eve"`, `! "eve" is no approver of ann`},
		{`"approver","approver"`, `"","approver"`, "! no question, or no decision"},
		{`"approved"`, `""`, "! no question, or no decision"},
		{`{"type":"x"}`, `"x"`, "! no question, or no decision"},
		{`"rule":7`, `"rules":7`, "! not a line of the record"},
		{`"rule":7`, `"rule":7,"rule":8`, "! not a line of the record"},
		{`"t",`, `"t"`, "! not a line of the record"},
		{`"rule":7`, `"rule":7,"id":"x-1","chain":{"n":1,"writer":"w","open":0,"prev":""},"hash":"h"`, strings.Replace(stamped, `"feedback":"é"`, `"feedback":"é","id":"ann/x-1"`, 1)},
		{made, `{"effect":"ends","time":"2020-01-01T00:00:00Z","threadId":"t","principal":"eve","of":"x-1","exit":0}`, `{"effect":"ends","time":"2026-01-02T02:04:05Z","threadId":"t","principal":"ann","of":"ann/x-1","exit":0}`},
		{made, `{"effect":"other","time":"2020-01-01T00:00:00Z","threadId":"t"}`, "! no question, or no decision"},
		{`{"time"`, `{"effect":"begins","time"`, "! no question, or no decision"},
		{"\u00e9", "\xff", strings.Replace(stamped, "\u00e9", "\ufffd", 1)},
	} {
		line, err := board.Stamp([]byte(strings.Replace(made, tt.from, tt.to, 1)), now, "ann", "bob")
		got := string(line)
		if err != nil {
			got = "! " + err.Error()
		}
		if part, fails := strings.CutPrefix(tt.want, "! "); fails && (line != nil || !strings.Contains(got, part)) || !fails && got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.to, got, tt.want)
		}
	}
}
