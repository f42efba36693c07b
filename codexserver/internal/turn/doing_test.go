package turn_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestDoing checks the line that a person sees of an event.
func TestDoing(t *testing.T) {
	for _, tt := range []struct {
		event protocol.EventMsg
		want  string
	}{
		{protocol.TaskStarted{}, "thinking"},
		{protocol.ExecCommandBegin{Command: []string{"make", "all"}}, "running make all"},
		{protocol.ExecCommandBegin{Command: []string{"echo", "b" + strings.Repeat("🦊", 300)}}, "running echo 'b" + strings.Repeat("🦊", 185) + "…"},
		{protocol.PatchApplyBegin{}, "changing files"},
		{protocol.BackgroundEvent{Message: "one\ntwo"}, "one two"},
		{protocol.StreamError{Message: "asking again in 7s: the provider answered 429"}, "asking again in 7s: the provider answered 429"},
		{protocol.ModelReroute{FromProvider: "a", FromModel: "k", ToProvider: "b", ToModel: "m", Reason: "its limit"}, "m of b answers from now on, in place of k of a: its limit"},
		{protocol.ModelReroute{FromModel: "k", ToModel: "m", Reason: "its limit"}, "m answers from now on, in place of k: its limit"},
		{protocol.TokenCount{}, ""},
	} {
		work := turn.New(changes.Options{})
		if _, got := work.Add("", 0, tt.event); got.Doing != tt.want {
			t.Errorf("%T: %q, want %q", tt.event, got.Doing, tt.want)
		}
		if got := work.State().Words(); tt.want != "" && got != tt.want || tt.want == "" && got != "starting" {
			t.Errorf("%T: the turn is %q, want %q", tt.event, got, tt.want)
		}
	}
}
