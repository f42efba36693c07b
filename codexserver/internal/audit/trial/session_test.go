package trial_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit/trial"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestForSession tries no other rules over a record with an approval for the session. It covers the same command in
// the same folder of the same conversation, and nothing else.
func TestForSession(t *testing.T) {
	basis := &protocol.Basis{Policy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxWorkspaceWrite, Available: true}
	asked := func(thread, call, cwd, words, decision string) audit.Line {
		return audit.Line{
			Thread: thread, ID: call, Decision: decision, By: "client", Covers: &audit.Covers{Confinable: true, Placed: true, Basis: basis},
			Question: fmt.Appendf(nil, `{"type":"exec_approval_request","call_id":%q,"command":["make",%q],"cwd":%q}`, call, words, cwd),
		}
	}
	ran := func(thread, call string) audit.Line {
		return audit.Line{Effect: audit.Begins, Thread: thread, ID: call, Call: call, Kind: "command", Command: []string{"make", "all"}, Cwd: "/work", Basis: basis}
	}
	first := asked("t", "1", "/work", "all", "approved_for_session")
	for name, tt := range map[string]struct {
		then audit.Line
		want []trial.Fate // none if it is decided as before
	}{
		"the same, without a question": {ran("t", "2"), nil},
		"the same, asked nevertheless": {asked("t", "2", "/work", "all", "approved"), []trial.Fate{trial.Runs}},
		"another command":              {asked("t", "2", "/work", "clean", "approved"), nil},
		"another folder":               {asked("t", "2", "/other", "all", "approved"), nil},
		"another conversation":         {asked("u", "2", "/work", "all", "approved"), nil},
		"another one, unasked":         {ran("u", "2"), []trial.Fate{trial.Asked}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := trial.Try(t.Context(), recordOf(t, first, tt.then), &trial.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []trial.Fate
			for _, c := range r.Changes {
				got = append(got, c.Now)
			}
			if r.Commands != 2 || !slices.Equal(got, tt.want) {
				t.Errorf("%d commands, of which %q are decided differently, want %q", r.Commands, got, tt.want)
			}
		})
	}
}
