package page

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

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
		q := approval.ExecQuestion(tt.event, "", "")
		q.Once = tt.once
		v := viewQuestion(&approval.Request{Question: q, Event: tt.event})
		if v.Reach != tt.reach || v.Covers != tt.covers || len(v.Notes) > 0 || v.Reason != tt.event.Reason {
			t.Errorf("%s: reach %q, covers %q, notes %q, reason %q", tt.name, v.Reach, v.Covers, v.Notes, v.Reason)
		}
	}
}

var rewrite = flag.Bool("update", false, "rewrite what the tests expect")

// TestQuestions compares what browsers get of questions, without their times, with testdata/questions.json.
func TestQuestions(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	ctx, cancel := context.WithDeadline(t.Context(), time.UnixMilli(4_000_000_000_000))
	defer cancel()
	moved := "/etc/b.txt"
	requests := []*approval.Request{
		{Event: protocol.ExecApprovalRequest{}, Question: &elicit.Question{}}, // which is decided then
		{
			Event:    protocol.ExecApprovalRequest{Command: []string{"bash", "-lc", "echo '<img src=x onerror=alert(1)>' \u202e\nrm -rf \x1b[2K~\n"}, Cwd: "/work/my repo", Reason: "it\u200bis needed", LeavesSandbox: true},
			Question: &elicit.Question{},
		},
		{
			Event:    protocol.ExecApprovalRequest{Command: []string{"make"}, Cwd: "/work", Reason: "the sandbox denied it", FromEngine: true, Subject: "Codex's sub-agent x", Once: true, Program: "/work/bin/ma\u200bke"},
			Question: &elicit.Question{Once: true},
		},
		{
			Event: protocol.PatchApprovalRequest{Cwd: "/work", Reason: "as asked", Changes: map[string]protocol.FileChange{
				"/work/new.txt":     {Add: &protocol.FileContent{Content: "one\n\ntwo"}},
				"/work/old.txt":     {Delete: &protocol.FileContent{Content: "gone\n"}},
				"/work/a.txt":       {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-x\n+y\u2066\n", MovePath: &moved}},
				"/work/../etc/x":    {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-x\n+y\n"}},
				"/work/empty":       {Add: &protocol.FileContent{}},
				"relative/in\nside": {Add: &protocol.FileContent{Content: "r\n"}},
			}},
			Question: &elicit.Question{},
		},
		{Event: protocol.RawEvent{Type: "approval_request"}, Question: &elicit.Question{Message: "Allow the tool `x`?\nArguments:\t\x07", Once: true}},
		{Event: protocol.RawEvent{Type: "approval_request"}, Question: &elicit.Question{Message: "Allow the tool?", Meta: map[string]any{
			"tool_params": map[string]any{"path": "/etc\u202e\n<b>"}, thread.MetaFacts: map[string]any{"threadId": "t"},
		}}},
		{
			Event:    protocol.PatchApprovalRequest{Links: map[string]string{"/b": "/a"}, Notes: []string{"A write to /b changes other names\u202e too."}},
			Question: &elicit.Question{Always: &elicit.Always{Words: "x, outside the sandbox\u202e<b>"}},
		},
	}
	for _, r := range requests {
		r.Thread.ID = "t"
		if _, err := p.board.ask(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	p.Decided(requests[0], approval.Decision{Outcome: elicit.Outcome{Decision: elicit.ApprovedAlways, Feedback: "a\u202eb"}, By: approval.ByPage, RuleWords: "x\u202e"})
	u, _, _ := p.board.since(0)
	for i := range u.Questions {
		u.Questions[i].At = 0
	}
	got, err := json.Marshal(u, jsontext.WithIndent("\t"), jsontext.EscapeForHTML(false))
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", "questions.json")
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
