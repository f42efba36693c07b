package board_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
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
