package turn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// question and decision stand for a question among events.
type (
	question struct{ approval.Subject }
	decision struct{ approval.Subject }
)

// step is an event, and what the turn does then.
type step struct {
	event any // an event, or the question or the decision about a subject
	want  string
}

// played are the events of a turn in a folder, which has another name too.
func played(dir, real string) []step {
	answer, failure := "hello", "no such tool"
	exec := approval.Command{CallID: "1", Command: []string{"make"}, Cwd: dir}
	add := map[string]protocol.FileChange{filepath.Join(dir, "a"): {Add: &protocol.FileContent{Content: "1\n2\n"}}}
	return []step{
		{protocol.TaskStarted{}, "thinking, news"},
		{protocol.UserMessage{Message: "mine", Kind: protocol.UserPlain}, ""},
		{protocol.UserMessage{Message: "also mine"}, ""},
		{protocol.UserMessage{Message: "the rules", Kind: "user_instructions"}, ""},
		{protocol.BackgroundEvent{Message: "not that", Refused: &protocol.Refused{Command: []string{"rm", "x"}, Cwd: real, Reason: "never"}}, "not that"},
		{protocol.BackgroundEvent{Refused: &protocol.Refused{Changes: add, Reason: "no patch"}}, ""},
		{protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "web", Reason: "no web"}}, ""},
		{question{exec}, ", news, waiting, waiting for approval of `make`"},
		{exec.Event(), ", waiting, waiting for approval of `make`"},
		{decision{exec}, ", news"},
		{protocol.ExecCommandBegin{CallID: "1", Command: exec.Command, Cwd: real}, "running make, may change files, news"},
		{protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte("out")}, ""},
		{protocol.ExecCommandEnd{CallID: "1", ExitCode: 3, Duration: protocol.Duration(2 * time.Second), AggregatedOutput: "output"}, "thinking, news"},
		{protocol.ExecCommandBegin{CallID: "1", Command: []string{"ls"}, Cwd: os.TempDir(), ReadOnly: true}, "running ls, news"},
		{protocol.PatchApplyBegin{CallID: "2", Changes: add}, "changing files, may change files"},
		{protocol.PatchApplyEnd{CallID: "2", Success: true}, "thinking, news"},
		{protocol.PatchApplyBegin{CallID: "3", Changes: map[string]protocol.FileChange{filepath.Join(dir, "b"): {Delete: &protocol.FileContent{}}}}, "changing files, may change files"},
		{protocol.PatchApplyEnd{CallID: "3", Stderr: "it does not fit"}, "thinking, news"},
		{protocol.MCPToolCallBegin{CallID: "4", Invocation: protocol.MCPInvocation{Server: "s", Tool: "t", Arguments: []byte(`{"secret":1}`)}}, "calling s/t, may change files"},
		{protocol.MCPToolCallEnd{CallID: "4", Invocation: protocol.MCPInvocation{Server: "s", Tool: "t"}, Result: protocol.MCPToolCallResult{Err: &failure}}, ""},
		{protocol.MCPToolCallEnd{CallID: "5", Invocation: protocol.MCPInvocation{Server: "s", Tool: "u"}}, ""},
		{protocol.TurnDiff{UnifiedDiff: "the diff"}, ""},
		{protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "think", Status: "completed"}}}, ""},
		{protocol.WebSearchEnd{Query: "q"}, ""},
		{protocol.ViewImageToolCall{Path: "i.png"}, ""},
		{protocol.AgentMessageDelta{Delta: "bro"}, ""},
		{protocol.StreamError{Message: "once more"}, "once more"},
		{protocol.AgentMessageDelta{Delta: "hel"}, ""},
		{protocol.AgentMessage{Message: answer}, "hello"},
		{protocol.AgentMessageDelta{Delta: "by"}, ""},
		{protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: 5, OutputTokens: 2}}, RateLimits: &protocol.RateLimits{}}, ""},
		{protocol.TokenCount{}, ""},
		{protocol.TaskComplete{LastAgentMessage: &answer, Incomplete: "it is cut"}, ""},
		{protocol.Error{Message: "a late fault"}, ""},
	}
}

// play gives events to a turn, one a second, and checks what the turn does then, and whether who waits for news is woken.
func play(t *testing.T, log *transcript.Log, w *turn.Turn, steps []step) {
	r := &approval.Request{Subject: approval.Other{}, Question: &elicit.Question{Message: "may it?"}}
	approved := approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}, By: "desk"}
	for i, step := range steps {
		news := w.Changed()
		got := ""
		switch m := step.event.(type) {
		case question:
			r.Subject = m.Subject
			log.Asked(r)
			w.Open(r)
		case decision:
			log.Decided(r, approved)
			w.Decided(r, approved)
		case protocol.EventMsg:
			got = w.Add("", log, m).Doing
		}
		if m, is := step.event.(protocol.EventMsg); is && turn.Changes(m) {
			got += ", may change files"
		}
		select {
		case <-news:
			got += ", news"
		default:
		}
		if w.Asks() {
			got += ", " + string(w.So().Status) + ", " + w.State().Words()
		}
		must.Equal(t, fmt.Sprintf("event %d, %T", i, step.event), step.want, got)
		<-time.After(time.Second)
	}
}

// TestTurn checks after each event what a turn does, and at the end all that it did.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := t.TempDir()
		dir := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(real, dir); err != nil {
			t.Skip(err)
		}
		log := transcript.New("")
		log.Close()
		log.Begin("late")
		if p, err := log.Transcript(0, 100); err != nil || p.Total != 0 {
			t.Errorf("a closed log: %+v, %v", p, err)
		}

		log = transcript.New("")
		defer log.Close()
		w := turn.New(changes.Options{})
		w.Continue(&protocol.TurnResult{
			Commands: []protocol.Command{{ID: 7, Command: "before"}}, Refused: []protocol.Refusal{{What: "before"}}, Truncated: protocol.Truncated{Commands: 2, Changes: 3},
		}, time.Now(), nil)
		w.Begin(t.Context(), protocol.SessionConfigured{SessionID: "id", Model: "m", Cwd: dir}, nil)
		log.Begin("do it")
		play(t, log, w, played(dir, real))
		did := w.So()
		usage := protocol.Tokens{Input: 5, Output: 2}
		if diff := cmp.Diff(protocol.TurnResult{
			ThreadID: "id", Model: "m", Status: protocol.StatusRunning, DurationMS: 34_000, Usage: &protocol.TurnUsage{Turn: usage, Thread: usage},
			Plan: []protocol.PlanStep{{Step: "think", Status: "completed"}},
			Commands: []protocol.Command{
				{ID: 7, Command: "before"}, {ID: 8, Command: "make", ApprovedBy: "desk", ExitCode: new(3), DurationMS: new(int64(2000))},
				{ID: 9, Command: "ls", Cwd: os.TempDir()},
			},
			Refused: []protocol.Refusal{
				{What: "before"},
				{Kind: "command", What: "rm x", Why: "never", By: string(approval.ByPolicy), Reason: "policy"},
				{Kind: "patch", What: filepath.Join(dir, "a"), Why: "no patch", By: string(approval.ByPolicy), Reason: "policy"},
				{Kind: "other", What: "web", Why: "no web", By: string(approval.ByPolicy), Reason: "policy"},
				{Kind: "failed", What: filepath.Join(dir, "b"), Why: "it does not fit", By: "engine"},
			},
			Truncated: protocol.Truncated{Commands: 2}, ChangesFrom: protocol.ChangesFromEvents,
			Changes: []protocol.Change{{Path: "a", Kind: "add", Added: new(2), Removed: new(0), By: protocol.ByPatch}},
			Unknown: []protocol.Unknown{{Path: dir, Why: "the turn is running, and only its patches are known"}},
		}, did); diff != "" {
			t.Errorf("what it did (-want +got):\n%s", diff)
		}
		end(w, nil)
		said := w.Result().Said
		must.Equal(t, "what it said", turn.Said{Text: "hello", Lacks: "it is cut", Coming: "by", Last: "hello"}, said)
		must.Equal(t, "its tokens", protocol.Tokens{Input: 5, Output: 2}, w.So().Usage.Turn)
		log.Changed(1, "its diff")
		log.End(errors.New("broken"))
		page := must.Get(log.Transcript(0, 4000))(t)
		written := page.Text
		const wanted = `=== turn 1, 2000-01-01T00:00:00Z
user:
  do it
user:
  mine
user:
  also mine
refused by the engine:
  not that
refused by the engine: the patch
  add DIR/a
  no patch
refused by the engine: web
  no web
question:
  may it?
  make
approved by desk
command 1: make
  in REAL
command 1 ended: exit code 3 after 2s, 6 bytes of output
command 2: ls
  in TMP
patch:
  add DIR/a
the patch was applied
patch:
  delete DIR/b
the patch was not applied:
  it does not fit
tool t of the MCP server s
tool t failed
plan:
  completed: think
web search:
  q
image: i.png
codex:
  hello
error:
  a late fault
the turn did not complete:
  broken
`
		must.Equal(t, "the transcript", wanted, strings.NewReplacer(real, "REAL", dir, "DIR", os.TempDir(), "TMP").Replace(written))
	})
}

// TestNamed names the turn in the events that have such a member, unless the engine has, and the thread in its first event.
func TestNamed(t *testing.T) {
	kinds := map[string]bool{"agent_message": false, "turn_diff": false, "token_count": false, "error": false}
	for kind := range strings.FieldsSeq("task_started task_complete turn_aborted exec_approval_request apply_patch_approval_request exec_command_begin exec_command_end patch_apply_begin patch_apply_end") {
		kinds[kind] = true
	}
	for kind, has := range kinds {
		for own, want := range map[string]string{"": "turn", "its own": "its own"} {
			m := must.Get(protocol.ParseEvent(fmt.Appendf(nil, `{"type":%q,"turn_id":%q}`, kind, own)))(t)
			named := turn.New(changes.Options{}).Add("turn", transcript.New(""), m).Event
			raw, err := protocol.AppendEvent(nil, named)
			if got := strings.Contains(string(raw), fmt.Sprintf(`"turn_id":%q`, want)); got != has || err != nil {
				t.Errorf("%s, %v", raw, err)
			}
		}
	}
	if named := turn.New(changes.Options{}).Add("turn", transcript.New(""), protocol.SessionConfigured{SessionID: "s"}).Event; named.(protocol.SessionConfigured).ThreadID != "s" {
		t.Errorf("%+v", named)
	}
}

// TestRefused keeps what was not approved, and by whom, on one line.
func TestRefused(t *testing.T) {
	files := map[string]protocol.FileChange{}
	for i := range 7 {
		files[fmt.Sprint("/w/", i)] = protocol.FileChange{}
	}
	for _, tt := range []struct {
		subject approval.Subject
		want    protocol.Refusal
	}{
		{approval.Command{Command: []string{"rm", "x"}, Cwd: "/w"}, protocol.Refusal{Kind: "command", What: "rm x"}},
		{approval.Command{Command: []string{"bash", "-lc", "rm x"}, Cwd: "/v"}, protocol.Refusal{Kind: "command", What: "rm x", Cwd: "/v"}},
		{approval.Patch{Changes: map[string]protocol.FileChange{"/w/a": {}}}, protocol.Refusal{Kind: "patch", What: "/w/a"}},
		{approval.Patch{Changes: files}, protocol.Refusal{Kind: "patch", What: "/w/0, /w/1, /w/2, /w/3, /w/4, … (7 files)"}},
		{approval.Other{Ask: &elicit.Question{Message: "may it?"}}, protocol.Refusal{Kind: "other", What: "may it?"}},
	} {
		for _, d := range []elicit.Decision{elicit.Denied, elicit.Abort, elicit.Approved, elicit.ApprovedForSession, elicit.ApprovedAlways} {
			w := turn.New(changes.Options{})
			w.Order.Key = "k"
			w.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
			r := &approval.Request{Subject: tt.subject, Question: &elicit.Question{Message: "may it?"}}
			w.Open(r)
			asked := w.IsOpen(r)
			w.Seen()
			unseen := w.Asks()
			w.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: d, Reason: "declined", Feedback: "not\nnow"}, By: "desk"})
			want := tt.want
			want.By, want.Reason = "desk", "declined"
			stopped := w.Resume() == nil
			did := w.So()
			if n := len(did.Refused); d.Approves() != (n == 0) || n > 1 || !asked || w.IsOpen(r) || unseen || stopped != (d == elicit.Abort) || did.Status != protocol.StatusRunning {
				t.Errorf("%s: %+v", d, did)
			} else if n == 1 {
				if !strings.HasSuffix(did.Refused[0].Why, `: not\nnow`) {
					t.Errorf("%s: why: %q", d, did.Refused[0].Why)
				}
				did.Refused[0].Why = ""
				must.Equal(t, string(d), want, did.Refused[0])
			}
		}
	}
}

// TestWhyStandsOnce checks that a result says why something was refused: in a remark that begins with it, or else by the entry.
func TestWhyStandsOnce(t *testing.T) {
	for remark, want := range map[string]string{"Declined, as nobody decides.": "", "The client declined 10 ms after the question.": "declined"} {
		w := turn.New(changes.Options{})
		w.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
		r := &approval.Request{Subject: approval.Command{Command: []string{"rm", "x"}}}
		w.Open(r)
		w.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied}, Remarks: []string{remark}})
		end(w, nil)
		must.Equal(t, remark, want, w.Result().Refused[0].Why)
	}
}

// TestTurnIsBounded checks that a turn keeps the last commands and refusals, and the beginning of a
// message that is being written.
func TestTurnIsBounded(t *testing.T) {
	w := turn.New(changes.Options{})
	w.Continue(&protocol.TurnResult{Commands: make([]protocol.Command, 999), Refused: make([]protocol.Refusal, 999)}, time.Now(), nil)
	w.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	for i, dropped := range []int{0, 1, 2} {
		w.Add("", transcript.New(""), protocol.ExecCommandBegin{Command: []string{"x"}})
		w.Add("", transcript.New(""), protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "x"}})
		did := w.So()
		if len(did.Commands) != 1000 || len(did.Refused) != 1000 || did.Truncated != (protocol.Truncated{Commands: dropped, Refused: dropped}) || did.Commands[999].ID != i+1 || did.Refused[999].What != "x" {
			t.Errorf("%d commands and %d refusals, and dropped %+v", len(did.Commands), len(did.Refused), did.Truncated)
		}
	}
	for _, delta := range []string{strings.Repeat("x", 1<<20-1), "yy", "z"} {
		w.Add("", transcript.New(""), protocol.AgentMessageDelta{Delta: delta})
	}
	end(w, nil)
	must.Equal(t, "the end of the message, at its bytes", 1<<20-1, strings.Index(w.Result().Said.Coming+"|", "yy|"))
}

// TestAnswered checks which events mean that the model has answered in this turn. The first count of a
// thread with an unknown past is of earlier turns before them.
func TestAnswered(t *testing.T) {
	for want, events := range map[int64][]protocol.EventMsg{
		10: {
			protocol.ExecApprovalRequest{}, protocol.PatchApprovalRequest{}, protocol.ExecCommandBegin{}, protocol.PatchApplyBegin{}, protocol.MCPToolCallBegin{}, protocol.AgentMessage{},
			protocol.AgentMessageDelta{}, protocol.AgentReasoning{}, protocol.AgentReasoningDelta{}, protocol.PlanUpdate{}, protocol.WebSearchBegin{}, protocol.ViewImageToolCall{},
		},
		0: {protocol.TaskStarted{}, protocol.BackgroundEvent{}, protocol.UserMessage{}, protocol.TokenCount{}},
	} {
		for _, m := range events {
			w := turn.New(changes.Options{})
			w.Begin(t.Context(), protocol.SessionConfigured{InitialMessages: []json.RawMessage{json.RawMessage(`{"type":"agent_message","message":"x"}`)}}, nil)
			w.Add("", transcript.New(""), m)
			w.Add("", transcript.New(""), protocol.TokenCount{Info: &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: 100}, LastTokenUsage: protocol.TokenUsage{InputTokens: 10}}})
			must.Equal(t, fmt.Sprintf("tokens of %T", m), want, w.So().Usage.Turn.Input)
		}
	}
}

// TestRerouted has other models answer: the last one is the turn's, the text of the one before does not
// count, and the first changes are kept.
func TestRerouted(t *testing.T) {
	w := turn.New(changes.Options{})
	w.Begin(t.Context(), protocol.SessionConfigured{Model: "m0"}, nil)
	w.Add("", transcript.New(""), protocol.AgentMessageDelta{Delta: "half"})
	var want []protocol.Rerouted
	for i := range 20 {
		m := protocol.ModelReroute{FromModel: fmt.Sprint("m", i), ToProvider: "p\n", ToModel: fmt.Sprint("m", i+1), Reason: "its limit"}
		if w.Add("", transcript.New(""), m); i < 3 {
			want = append(want, protocol.Rerouted{FromModel: m.FromModel, ToProvider: `p\n`, ToModel: m.ToModel, Reason: m.Reason})
		}
	}
	did := w.So()
	if diff := cmp.Diff(want, did.Rerouted); diff != "" || did.Model != "m20" {
		t.Errorf("the model is %s; the changes (-want +got):\n%s", did.Model, diff)
	}
	end(w, nil)
	must.Equal(t, "the text that counts", "", w.Result().Said.Coming)
	must.Equal(t, "the remarks, and the first one", "16: m1 of p\\n answers from now on, in place of m0: its limit.", fmt.Sprintf("%d: %s", len(w.Result().Texts)-1, w.Result().Texts[1]))
}

// TestMissing has MCP servers that did not start: each is in the result once, with the last reason, and clients read those with
// words alone.
func TestMissing(t *testing.T) {
	w := turn.New(changes.Options{})
	w.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	for _, m := range []protocol.Missing{{Server: "web", Why: "exit status 1"}, {Server: "db", Why: "too slow"}, {Server: "web", Why: "exit status\n2"}} {
		w.Add("", transcript.New(""), protocol.BackgroundEvent{Missing: &m})
	}
	want := []protocol.Missing{{Server: "db", Why: "too slow"}, {Server: "web", Why: `exit status\n2`}}
	must.Equal(t, "missing while it runs", want, w.So().Missing)
	end(w, nil)
	did := w.Result()
	must.Equal(t, "missing", want, did.Missing)
	if len(did.Texts) != 1 || strings.Contains(string(did.JSON(1<<20)), `"missing":[]`) {
		t.Errorf("%q, %s", did.Texts, did.JSON(1<<20))
	}
	none := turn.New(changes.Options{})
	none.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	end(none, nil)
	if r := none.Result(); strings.Contains(string(r.JSON(1<<20)), "missing") {
		t.Errorf("%s", r.JSON(1<<20))
	}
}

// TestMade has the engine make a file elsewhere, and one in the folder.
func TestMade(t *testing.T) {
	tt := newTurn(t, func(tt *work) { tt.write("a.txt", "a\n") })
	elsewhere := filepath.Join(t.TempDir(), "x.png")
	for _, path := range []string{elsewhere, filepath.Join(tt.dir, "y.png")} {
		must.OK(t, os.WriteFile(path, []byte("\x89PNG\x00"), 0o644))
		tt.emit(protocol.BackgroundEvent{Message: "made", Made: path})
	}
	want := []protocol.Change{{Path: elsewhere, Kind: "add", By: protocol.ByCommand}, {Path: "y.png", Kind: "add", By: protocol.ByCommand}}
	must.Equal(t, "changes while it runs", want, tt.c.So().Changes)
	tt.write("z.txt", "of somebody else\n")
	tt.c.End(nil)
	must.Equal(t, "changes", append(want, protocol.Change{Path: "z.txt", Kind: "add", Added: new(1), Removed: new(0), By: protocol.ByOther}), tt.c.So().Changes)
}
