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
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var rewrite = flag.Bool("update", false, "rewrite what the tests expect")

// TestQuestions compares what browsers get of questions, without their times, with testdata/questions.json. They tell a command
// that a sandbox confines from one that nothing confines, and what an approval covers, apart from the words of a model.
func TestQuestions(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	p := newPage("127.0.0.1:1", &Options{})
	ctx, cancel := context.WithDeadline(t.Context(), time.UnixMilli(4_000_000_000_000))
	defer cancel()
	moved := "/etc/b.txt"
	outside := approval.Command{Command: []string{"ls"}, LeavesSandbox: true, Tip: "There is a key\u200b for it."}
	unconfined := approval.Command{Command: []string{"ls"}, NoSandbox: true, Reason: "It runs in the sandbox."}
	denied := approval.Overrule{Refused: protocol.Refused{Command: []string{"rm", "x"}, Cwd: "/work", Reason: `denied by Codex's reviewer, a model, which says: "it writes outside"`}}
	requests := []*approval.Request{
		{Subject: approval.Command{}, Question: &elicit.Question{}}, // which is decided then
		{
			Subject:  approval.Command{Command: []string{"bash", "-lc", "echo '<img src=x onerror=alert(1)>' \u202e\nrm -rf \x1b[2K~\n"}, Cwd: "/work/my repo", Reason: "it\u200bis needed", LeavesSandbox: true},
			Question: &elicit.Question{},
		},
		{
			Subject:  approval.Command{Command: []string{"make"}, Cwd: "/work", Reason: "the sandbox denied it", FromEngine: true, Asker: "Codex's sub-agent x", Once: true, Notes: []string{"It starts /work/bin/ma\u200bke."}},
			Question: &elicit.Question{Once: true},
		},
		{Subject: outside, Question: outside.Question("", "")},
		{Subject: unconfined, Question: unconfined.Question("", "")},
		{
			Subject: approval.Patch{Cwd: "/work", Reason: "as asked", Changes: map[string]protocol.FileChange{
				"/work/new.txt":     {Add: &protocol.FileContent{Content: "one\n\ntwo"}},
				"/work/old.txt":     {Delete: &protocol.FileContent{Content: "gone\n"}},
				"/work/a.txt":       {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-x\n+y\u2066\n", MovePath: &moved}},
				"/work/over":        {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1,2 +1 @@\n-x\n-z\n+y\n", Replaces: true}},
				"/work/../etc/x":    {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-x\n+y\n"}},
				"/work/empty":       {Add: &protocol.FileContent{}},
				"relative/in\nside": {Add: &protocol.FileContent{Content: "r\n"}},
			}},
			Question: &elicit.Question{},
		},
		{Subject: approval.Other{}, Question: &elicit.Question{Message: "Allow the tool `x`?\nArguments:\t\x07", Once: true}},
		{Subject: approval.Other{}, Question: &elicit.Question{Message: "Allow the tool?", Meta: map[string]any{
			"tool_params": map[string]any{"path": "/etc\u202e\n<b>"}, thread.MetaFacts: map[string]any{"threadId": "t"},
		}}},
		{Subject: denied, Question: denied.Question("", "")},
		{
			Subject:  approval.Patch{Links: map[string]string{"/b": "/a"}, Notes: []string{"A write to /b changes other names\u202e too."}},
			Question: &elicit.Question{Always: &elicit.Always{Words: "x, outside the sandbox\u202e<b>"}},
		},
	}
	for _, r := range requests {
		r.Thread.ID = "t"
		must.Get(p.board.ask(ctx, r))(t)
	}
	p.Decided(requests[0], approval.Decision{Outcome: elicit.Outcome{Decision: elicit.ApprovedAlways, Feedback: "a\u202eb"}, By: approval.ByPage, RuleWords: "x\u202e"})
	u, _, _ := p.board.since(0, false)
	for i := range u.Questions {
		u.Questions[i].At = 0
	}
	got := must.Get(json.Marshal(u, jsontext.WithIndent("\t"), jsontext.EscapeForHTML(false)))(t)
	got = append(got, '\n')
	file := filepath.Join("testdata", "questions.json")
	if *rewrite {
		must.OK(t, os.WriteFile(file, got, 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	must.Equal(t, "result", strings.Split(string(want), "\n"), strings.Split(string(got), "\n"))
}
