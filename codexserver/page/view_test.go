package page

import (
	"context"
	stdjson "encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// TestView compares what browsers get of a conversation with every kind of entry with
// testdata/view.json.
func TestView(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	me := approval.Thread{ID: "0199-thread"}
	for _, m := range []protocol.EventMsg{
		protocol.SessionConfigured{SessionID: me.ID, Model: "gpt-5", InitialMessages: []stdjson.RawMessage{
			[]byte(`{"type":"user_message","message":"<environment/>","kind":"environment_context"}`),
			[]byte(`{"type":"user_message","message":"Add a\nhealth check."}`),
			[]byte(`{"type":"agent_message","message":"It is there."}`),
			[]byte(`{"type":"agent_message"`),
		}},
		protocol.UserMessage{Message: "Push it.", Kind: protocol.UserPlain},
		protocol.TaskStarted{},
		protocol.AgentReasoningDelta{Delta: "**Looking** at "},
		protocol.AgentReasoningDelta{Delta: "the remote"},
		protocol.AgentReasoningSectionBreak{},
		protocol.AgentReasoning{Text: "**Looking** at the remote."},
		protocol.AgentMessageDelta{Delta: "I will "},
		protocol.AgentMessageDelta{Delta: "push"},
		protocol.AgentMessage{Message: "I will push."},
		protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "test", Status: "in_progress"}}},
		protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "test", Status: "completed"}, {Step: "push", Status: "pending"}}, Explanation: new("Tests\u202e first.")},
		protocol.ExecCommandBegin{CallID: "1", Command: []string{"go", "test", "./...", "a b"}, Cwd: "/work/my repo"},
		protocol.ExecCommandOutputDelta{CallID: "1", Stream: protocol.Stdout, Chunk: []byte("ok\xc3")},
		protocol.ExecCommandOutputDelta{CallID: "1", Stream: protocol.Stdout, Chunk: []byte("\xa9\n")},
		protocol.ExecCommandEnd{CallID: "1", AggregatedOutput: "ok\u00e9 \x1b[31mred\x1b[0m\n", ExitCode: 2, Duration: protocol.Duration(1500 * time.Millisecond)},
		protocol.ExecCommandEnd{CallID: "unknown"},
		protocol.PatchApplyBegin{CallID: "2", Changes: map[string]protocol.FileChange{"/work/a.txt": {Add: &protocol.FileContent{Content: "one\ntwo\n"}}}},
		protocol.PatchApplyEnd{CallID: "2", Stderr: "no such folder"},
		protocol.TurnDiff{UnifiedDiff: "--- a\n+++ b\n-x\n"},
		protocol.TurnDiff{UnifiedDiff: "--- a\n+++ b\n-x\n+y\n"},
		protocol.MCPToolCallBegin{CallID: "3", Invocation: protocol.MCPInvocation{Server: "docs", Tool: "find", Arguments: []byte(`{"q":1}`)}},
		protocol.MCPToolCallEnd{CallID: "3", Invocation: protocol.MCPInvocation{Server: "docs", Tool: "find", Arguments: []byte(`{"q":1}`)}, Result: protocol.MCPToolCallResult{Ok: []byte(`{"found":[]}`)}},
		protocol.WebSearchBegin{CallID: "4"},
		protocol.WebSearchEnd{CallID: "4", Query: "git push"},
		protocol.ViewImageToolCall{Path: "/work/x.png"},
		protocol.BackgroundEvent{Message: "a remark"},
		protocol.StreamError{Message: "the stream broke; trying again"},
		protocol.ModelReroute{FromModel: "k", ToProvider: "b", ToModel: "m", Reason: "its limit"},
		protocol.TokenCount{},
		protocol.RawEvent{Type: "new", Raw: []byte(`{"type":"new"}`)},
		protocol.Error{Message: "the model is gone"},
		protocol.TaskComplete{},
		protocol.UserMessage{Message: "Once more."},
		protocol.ExecCommandBegin{CallID: "5", Command: []string{"sleep", "9"}, Cwd: "/work"},
		protocol.TurnAborted{Reason: protocol.AbortInterrupted},
		protocol.UserMessage{Message: "And again."},
		protocol.TaskComplete{},
		protocol.ShutdownComplete{},
	} {
		p.Event(me, m)
	}
	golden(t, "view.json", p)
}

// TestQuestions compares what browsers get of questions with testdata/questions.json.
func TestQuestions(t *testing.T) {
	p := newPage("127.0.0.1:1", &Options{})
	ctx, cancel := context.WithDeadline(t.Context(), time.UnixMilli(4_000_000_000_000))
	defer cancel()
	moved := "/etc/b.txt"
	requests := []*approval.Request{
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
			"tool_params": map[string]any{"path": "/etc\u202e\n<b>"},
		}}},
	}
	for _, r := range requests {
		r.Thread.ID = "t"
		if _, err := p.board.ask(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	ruled := request("t", strings.Repeat("long ", 2000))
	p.Decided(ruled, approval.Decision{
		Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "a rule\x1b"}, By: approval.ByRule,
	})
	golden(t, "questions.json", p)
}

// golden compares all that is on a page, without its times, with a file.
func golden(t *testing.T, name string, p *Page) {
	t.Helper()
	u, _, _ := p.board.since(0)
	for i := range u.Conversations {
		u.Conversations[i].Began = 0
		for j := range u.Conversations[i].Entries {
			u.Conversations[i].Entries[j].At = 0
		}
	}
	got, err := json.Marshal(u, jsontext.WithIndent("\t"), jsontext.EscapeForHTML(false))
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name)
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
