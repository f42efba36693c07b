package turn_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// readBack returns the result that a text has.
func readBack(t testing.TB, out []byte) (r protocol.TurnResult) {
	t.Helper()
	must.OK(t, json.Unmarshal(out, &r))
	return r
}

// TestLeast fills the members of the smallest result that are never cut.
func TestLeast(t *testing.T) {
	for _, char := range []string{"x", `"`, "\\", "\x01", "\xff", "é", "\u2028"} {
		long := strings.Repeat(char, 1000)
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), protocol.SessionConfigured{SessionID: long, Model: long}, nil)
		for range 4 {
			c.Event(protocol.ModelReroute{FromProvider: long, FromModel: long, ToProvider: long, ToModel: long, Reason: long})
		}
		c.End(nil)
		r := c.So()
		r.Content = long
		out := r.JSON(protocol.MinResult)
		if len(out) > protocol.MinResult || !strings.Contains(string(out), `"rerouted":[{`) {
			t.Errorf("%q: %d bytes: %s", char, len(out), out)
		}
	}
}
