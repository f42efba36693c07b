package turn_test

import (
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestContinue checks that a turn has what it did in another process.
func TestContinue(t *testing.T) {
	before := protocol.TurnResult{
		Commands: []protocol.Command{
			{ID: 3, Command: "make", Cwd: "/w", ExitCode: new(2), DurationMS: new(int64(1500)), ApprovedBy: "desk"}, {ID: 4, Command: "sleep"},
		},
		Refused:   []protocol.Refusal{{Kind: "command", What: "rm", Cwd: "/w", Why: "no", By: "client", Reason: "declined"}},
		Truncated: protocol.Truncated{Commands: 5, Refused: 6},
		Changes:   []protocol.Change{{Path: "a", Kind: "add", Added: new(2), Removed: new(1), By: protocol.ByPatch}},
	}
	c := turn.New(changes.Options{})
	c.Continue(&before, time.Now(), nil)
	c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
	c.End(nil)
	did := c.So()
	if diff := cmp.Diff(before.Commands, did.Commands) + cmp.Diff(before.Refused, did.Refused) + cmp.Diff(before.Truncated, did.Truncated) + cmp.Diff(before.Changes, did.Changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Untold() == "" {
		t.Error("what the commands changed is thought known")
	}
}
