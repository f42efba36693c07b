package page

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestNotesOfPatch checks that the page shows what the engine says about a patch.
func TestNotesOfPatch(t *testing.T) {
	v := viewQuestion(&approval.Request{Question: &elicit.Question{}, Event: protocol.PatchApprovalRequest{
		Links: map[string]string{"/b": "/a"}, Notes: []string{"A write to /b changes other names\u202e too."},
	}})
	want := []string{
		"The patch names /a, from which symbolic links lead to /b.",
		`A write to /b changes other names\u{202e} too.`,
	}
	if diff := cmp.Diff(want, v.show().Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReachOfQuestion tells a command that a sandbox confines from one that nothing confines,
// and says what an approval covers, apart from the words of a model.
func TestReachOfQuestion(t *testing.T) {
	const again = " For this session, the same words run again in this folder"
	for _, tt := range []struct {
		name          string
		event         protocol.ExecApprovalRequest
		once          bool
		reach, covers string
	}{
		{"unknown", protocol.ExecApprovalRequest{}, false, "", "Approve once covers this one run."},
		{"outside, once", protocol.ExecApprovalRequest{LeavesSandbox: true}, true,
			"If approved, it runs outside the sandbox, once: files and network are open.", "Approve once covers this one run."},
		{"outside", protocol.ExecApprovalRequest{LeavesSandbox: true}, false,
			"If approved, it runs outside the sandbox, once: files and network are open.",
			"Approve once covers this one run." + again + ", only inside the sandbox."},
		{"no sandbox", protocol.ExecApprovalRequest{NoSandbox: true, Reason: "It runs in the sandbox."}, false,
			"If approved, it runs once, without a sandbox: files and network are open.", "Approve once covers this one run." + again + "."},
	} {
		q := (&elicit.ExecQuestion{Command: []string{"ls"}, Cwd: "/w", Unsandboxed: tt.event.LeavesSandbox, NoSandbox: tt.event.NoSandbox}).Question()
		q.Once = tt.once
		v := viewQuestion(&approval.Request{Question: q, Event: tt.event})
		if v.Reach != tt.reach || v.Covers != tt.covers || len(v.Notes) > 0 || v.Reason != tt.event.Reason {
			t.Errorf("%s: reach %q, covers %q, notes %q, reason %q", tt.name, v.Reach, v.Covers, v.Notes, v.Reason)
		}
	}
	patch := viewQuestion(&approval.Request{Question: &elicit.Question{}, Event: protocol.PatchApprovalRequest{}})
	if want := "Approve once covers these changes, and no later ones."; patch.Covers != want {
		t.Errorf("a patch: %q, want %q", patch.Covers, want)
	}
}

// TestFactsOfQuestion shows what an engine adds to its question, and not the thread that the
// page shows anyway.
func TestFactsOfQuestion(t *testing.T) {
	for want, meta := range map[string]map[string]any{
		"":                   {thread.MetaFacts: map[string]any{"threadId": "t"}},
		"{\n  \"own\": 1\n}": {"own": 1},
	} {
		v := viewQuestion(&approval.Request{Question: &elicit.Question{Meta: meta}, Event: protocol.RawEvent{}})
		if v.Facts != want {
			t.Errorf("%v: %q, want %q", meta, v.Facts, want)
		}
	}
}

// TestAlwaysOfQuestion shows the whole rule that a person may accept, and
// what else the approval covers. Hidden characters in it are visible.
func TestAlwaysOfQuestion(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	for _, tt := range []struct {
		always *elicit.Always
		want   *alwaysView
	}{
		{nil, nil},
		{&elicit.Always{Words: "x, outside the sandbox\u202e<b>"}, &alwaysView{Words: `x, outside the sandbox\u{202e}<b>`}},
		{&elicit.Always{Words: "x, in the sandbox"}, &alwaysView{Words: "x, in the sandbox"}},
	} {
		r := request("t", "make")
		asked := *r.Question
		asked.Always, r.Question = tt.always, &asked
		q, err := p.board.ask(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, q.entry.Question.show().Always); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.ApprovedAlways}, By: approval.ByPage, RuleWords: "x\u202e"})
		if end := q.entry.Question.show().end; end.Rule != `x\u{202e}` {
			t.Errorf("%+v", end)
		}
	}
}
