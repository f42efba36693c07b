package trial_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit/trial"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// recordOf writes a record and returns its files.
func recordOf(t *testing.T, lines ...audit.Line) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, err := audit.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := line.Append(nil)
		if err == nil {
			_, err = l.Write(append(text, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// TestOutside tries rules over a command that was approved for the sandbox, which stopped it, and was asked about
// again. A rule for the sandbox alone saves the first question only: the second one is about a run outside.
func TestOutside(t *testing.T) {
	question := []byte(`{"type":"exec_approval_request","call_id":"c","command":["git","push"],"cwd":"/work"}`)
	var lines []audit.Line
	for _, again := range []bool{false, true} {
		lines = append(lines, audit.Line{Thread: "t", ID: "1", Question: question, Decision: "approved", By: "client", Covers: &audit.Covers{
			Confinable: !again, Placed: true,
			Basis: &protocol.Basis{Policy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxWorkspaceWrite, Available: true, Again: again},
		}})
	}
	paths := recordOf(t, lines...)
	for _, tt := range []struct {
		rules approval.Rules
		want  []trial.Fate // none if it is asked about, as before
	}{
		{approval.Rules{}, nil},
		{approval.Rules{Allow: []approval.Rule{{Command: []string{"git"}}}}, nil},
		{approval.Rules{Allow: []approval.Rule{{Command: []string{"git"}, Outside: true}}}, []trial.Fate{trial.Runs}},
		{approval.Rules{Deny: [][]string{{"git"}}}, []trial.Fate{trial.Refused}},
	} {
		r, err := trial.Try(t.Context(), paths, &trial.Options{Rules: tt.rules})
		if err != nil {
			t.Fatal(err)
		}
		var got []trial.Fate
		for _, c := range r.Changes {
			got = append(got, c.Now)
		}
		if r.Commands != 1 || !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %d commands, of which %q are decided differently, want %q", tt.rules, r.Commands, got, tt.want)
		}
	}
}
