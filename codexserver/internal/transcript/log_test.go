package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// log is a log into which a turn writes.
type log struct {
	*transcript.Log
	turn *turn.Turn
}

func (l *log) Add(m protocol.EventMsg) { l.turn.Add("", l.Log, m) }

func newLog(t *testing.T) *log {
	t.Helper()
	tr := &log{transcript.New(filepath.Join(t.TempDir(), "new")), turn.New(changes.Options{})}
	t.Cleanup(tr.Close)
	return tr
}

// all reads a text page by page, and checks that the pages have no gaps.
func all(t *testing.T, most int, read func(offset int64, most int) (transcript.Page, error)) (string, transcript.Page) {
	t.Helper()
	var b strings.Builder
	offset := int64(0)
	for {
		p := must.Get(read(offset, most))(t)
		if offset > 0 && p.Offset != offset || len(p.Text) > most || !utf8.ValidString(p.Text) {
			t.Fatalf("asked for %d, got %d bytes from %d on", offset, len(p.Text), p.Offset)
		}
		b.WriteString(p.Text)
		if offset = p.Offset + int64(len(p.Text)); offset == p.Total {
			return b.String(), p
		}
		if p.Text == "" {
			t.Fatalf("nothing at %d of %d", offset, p.Total)
		}
	}
}

// TestOpenQuestions records a question before its decision if a client may cut it.
func TestOpenQuestions(t *testing.T) {
	long := []string{"bash", "-lc", strings.Repeat("echo a; ", 500) + "rm -rf ~"}
	for _, tt := range []struct {
		name    string
		command []string
		want    bool
	}{{"short", []string{"ls"}, false}, {"long", long, true}} {
		tr := newLog(t)
		e := approval.Command{Command: tt.command, Cwd: "/w"}
		tr.Asked(&approval.Request{Subject: e, Question: e.Question("", "")})
		got, _ := all(t, 4000, tr.Transcript)
		if strings.Contains(got, "open question:") != tt.want || tt.want && !strings.Contains(got, elicit.ShowCommand(tt.command)) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestTranscript(t *testing.T) {
	tr := newLog(t)
	tr.Add(protocol.SessionConfigured{InitialMessages: []json.RawMessage{
		json.RawMessage(`{"type":"user_message","message":"earlier","kind":"plain"}`),
		json.RawMessage(`{"type":"user_message","message":"the rules","kind":"user_instructions"}`),
		json.RawMessage(`{"type":"agent_message","message":"yes"}`),
		json.RawMessage(`no JSON`),
	}})
	tr.Begin("do it\ncodex:\nand more\r\rend")
	tr.Add(protocol.ExecCommandBegin{CallID: "1", Command: []string{"sh", "-c", "echo 'a\nb'"}, Cwd: "/w\nuser:"})
	tr.Add(protocol.ExecCommandEnd{CallID: "1", AggregatedOutput: "a\nb\n", ExitCode: 2, Duration: protocol.Duration(1_500_000_000)})
	ask := &approval.Request{Subject: approval.Other{}, Question: &elicit.Question{Message: "Allow it?\nuser: yes", NotDone: "nothing ran"}}
	tr.Decided(ask, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "no\ncodex:"}, By: approval.ByClient})
	tr.Decided(ask, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}, By: approval.ByRule})
	tr.Add(protocol.PatchApplyBegin{CallID: "2", Changes: map[string]protocol.FileChange{"/w/b": {Add: &protocol.FileContent{}}, "/w/a\n": {Update: &protocol.FileUpdate{}}, "/w/c": {Update: &protocol.FileUpdate{Replaces: true}}}})
	tr.Add(protocol.PatchApplyEnd{CallID: "2", Stderr: "no such line"})
	tr.Add(protocol.MCPToolCallBegin{Invocation: protocol.MCPInvocation{Server: "s", Tool: "t", Arguments: json.RawMessage(`{"token":"sk-secret"}`)}})
	tr.Add(protocol.BackgroundEvent{Message: "Decide at http://127.0.0.1:80/#sk-secret"})
	tr.Add(protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "one", Status: "pending"}}})
	tr.Add(protocol.AgentMessage{Message: "done\xff"})
	tr.Add(protocol.TaskComplete{LastAgentMessage: new("done\xff")})
	tr.End(nil)
	tr.Begin("again")
	tr.Add(protocol.TaskComplete{LastAgentMessage: new("only there")})
	tr.End(errors.New("no\nmodel"))
	got, p := all(t, 64, tr.Transcript)
	if p.Cut != 0 {
		t.Errorf("%+v", p)
	}
	want := `=== what was said before
user:
  earlier
codex:
  yes
=== turn 1
user:
  do it
  codex:
  and more
  
  end
command 1: sh -c $'echo \'a\nb\''
  in /w\nuser:
command 1 ended: exit code 2 after 1.5s, 4 bytes of output
question:
  Allow it?
  user: yes
denied by client:
  declined: no
  codex:
question:
  Allow it?
  user: yes
approved by rule
patch:
  update /w/a\n
  add /w/b
  replace /w/c
the patch was not applied:
  no such line
tool t of the MCP server s
plan:
  pending: one
codex:
  done�
=== turn 2
user:
  again
codex:
  only there
the turn did not complete:
  no
  model
`
	var lines []string
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "=== turn") {
			line, _, _ = strings.Cut(line, ",")
			line += "\n"
		}
		lines = append(lines, line)
	}
	must.Equal(t, "the transcript", want, strings.Join(lines, ""))
}

func TestPages(t *testing.T) {
	const line = "aé€😀\n"
	for most, lines := range map[int]int{4: 3000, 5: 3000, 7: 3000, 1000: 20_000, 45_000: 20_000, 1 << 20: 20_000} {
		tr := newLog(t)
		text := strings.Repeat(line, lines) // more than one piece
		tr.Changed(1, text)
		if got, p := all(t, most, tr.Diff); got != "# turn 1\n"+text || p.Total != int64(len(got)) || p.Cut != 0 {
			t.Errorf("%d bytes a page: %d bytes, %+v", most, len(got), p.Total)
		}
	}
	tr := newLog(t)
	text := strings.Repeat(line, 20_000)
	tr.Changed(1, text)
	// An offset within a character is moved to its end.
	at := int64(len("# turn 1\na") + 1)
	if p, err := tr.Diff(at, 100); err != nil || p.Offset != at+1 || !strings.HasPrefix(p.Text, "€") {
		t.Errorf("%+v, %v", p, err)
	}
	total := int64(len("# turn 1\n") + len(text))
	if p, err := tr.Diff(total, 100); err != nil || p.Text != "" {
		t.Errorf("at the end: %+v, %v", p, err)
	}
	for _, offset := range []int64{total + 1, -1, 1<<63 - 1} {
		if _, err := tr.Diff(offset, 100); err == nil || !strings.HasPrefix(err.Error(), "argument /offset: ") {
			t.Errorf("%d: %v", offset, err)
		}
	}
}

// TestOldestIsDropped checks that an offset stays valid when the beginning is dropped.
func TestOldestIsDropped(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	tr := newLog(t)
	mark := strings.Repeat("x", 1<<20)
	for i := range 20 {
		tr.Changed(i, mark)
	}
	p, err := tr.Diff(0, 1000)
	if err != nil || p.Offset == 0 || p.Cut != p.Offset || p.Total-p.Offset > transcript.MaxDiffs || p.Total-p.Offset < transcript.MaxDiffs*9/10 {
		t.Errorf("%d to %d of which %d are cut, %v", p.Offset, p.Total, p.Cut, err)
	}
	again, err := tr.Diff(p.Offset+10, 10)
	if err != nil || again.Text != p.Text[10:20] {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestWithoutAFile checks that logs are kept in memory if there is no file.
func TestWithoutAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	tr := transcript.New(file)
	text := strings.Repeat("x", 100_000)
	tr.Changed(1, text)
	if got, _ := all(t, 1000, tr.Diff); got != "# turn 1\n"+text {
		t.Errorf("%d bytes", len(got))
	}
}

func TestOutput(t *testing.T) {
	tr := newLog(t)
	begin := func(id string) { tr.Add(protocol.ExecCommandBegin{CallID: id, Command: []string{"x"}}) }
	out := func(id, stream, chunk string) {
		tr.Add(protocol.ExecCommandOutputDelta{CallID: id, Stream: protocol.OutputStream(stream), Chunk: []byte(chunk)})
	}
	check := func(command int, text, note string, cut int64) {
		t.Helper()
		p, _, err := tr.Output(command, 0, 1<<20)
		if err != nil || p.Text != text || p.Note != note || p.Cut != cut {
			t.Errorf("command %d: %.100q, note %q, %d cut, %v", command, p.Text, p.Note, p.Cut, err)
		}
	}
	wrong := func(command int) {
		t.Helper()
		if _, _, err := tr.Output(command, 0, 10); err == nil || !strings.HasPrefix(err.Error(), "argument /command: ") {
			t.Errorf("command %d: %v", command, err)
		}
	}
	wrong(0)
	tr.Begin("p")
	begin("a")
	out("a", "stderr", "b\xff")
	out("a", "stdout", "a\xe2\x82")
	check(1, "b\uFFFDa", "The command is running.", 0)
	out("a", "stdout", "\xac!")
	out("unknown", "stdout", "?")
	check(1, "b\uFFFDa€!", "The command is running.", 0)
	tr.Add(protocol.ExecCommandEnd{CallID: "a", AggregatedOutput: "whole", Omitted: 7})
	check(1, "whole", "", 7)
	begin("a") // models reuse ids
	tr.Add(protocol.ExecCommandEnd{CallID: "a"})
	check(2, "", "The command has printed nothing.", 0)
	begin("b")
	out("b", "stdout", "partly")
	tr.End(nil)
	check(3, "partly", "The turn ended before the command did.", 0)
	check(0, "partly", "The turn ended before the command did.", 0)
	begin("c")
	long := strings.Repeat("é", 3<<20)
	tr.Add(protocol.ExecCommandEnd{CallID: "c", Stdout: long})
	text, p := all(t, 45_000, func(offset int64, most int) (transcript.Page, error) {
		p, _, err := tr.Output(4, offset, most)
		return p, err
	})
	if p.Cut != 4<<20 || !strings.Contains(text, fmt.Sprintf("\n[... %d bytes are left out here ...]\n", 4<<20)) {
		t.Errorf("%d bytes, %d cut", len(text), p.Cut)
	}
	wrong(5)
	wrong(-1)
	for i := range 1000 {
		id := fmt.Sprint(i)
		begin(id)
		tr.Add(protocol.ExecCommandEnd{CallID: id, AggregatedOutput: id})
	}
	wrong(4)
	check(5, "0", "", 0)
	check(1004, "999", "", 0)
	must.Equal(t, "the next turn", 2, tr.Begin("on"))
	begin("first") // the first of a thousand is kept
	for range 999 {
		begin("other")
	}
	tr.Add(protocol.ExecCommandEnd{CallID: "first", AggregatedOutput: "later"})
	check(1005, "later", "", 0)
}

// TestOutputsAreBounded checks the limits for what commands print while they run, and for all that they have printed.
func TestOutputsAreBounded(t *testing.T) {
	testenv.NeedsUnix(t, testenv.OpenFiles)
	tr := newLog(t)
	chunk := strings.Repeat("x", 3<<19)
	for i := range 3 {
		id := fmt.Sprint(i)
		tr.Add(protocol.ExecCommandBegin{CallID: id})
		tr.Add(protocol.ExecCommandOutputDelta{CallID: id, Chunk: []byte(chunk)})
		p, _, err := tr.Output(0, 0, 10)
		if want := []int64{3 << 19, 1 << 19, 0}[i]; err != nil || p.Total != want || p.Cut != 3<<19-want {
			t.Errorf("command %d that runs: %d bytes, %d cut, %v", i+1, p.Total, p.Cut, err)
		}
	}
	tr.End(nil)
	for i := range 20 {
		id := fmt.Sprint(i)
		tr.Add(protocol.ExecCommandBegin{CallID: id})
		tr.Add(protocol.ExecCommandEnd{CallID: id, AggregatedOutput: chunk})
	}
	var kept int64
	for i := range 23 {
		p, _, err := tr.Output(i+1, 0, 10)
		must.OK(t, err)
		kept += p.Total - min(p.Cut, p.Total)
	}
	if kept > transcript.MaxOutputs || kept < transcript.MaxOutputs*9/10 {
		t.Errorf("%d bytes are kept", kept)
	}
}

func TestDiffNotes(t *testing.T) {
	tr := newLog(t)
	for _, step := range []struct {
		do   func()
		note string
	}{
		{func() {}, "No turn is known to have changed files."},
		{func() { tr.Begin("p") }, "A turn is running: its diff comes when it has ended."},
		{func() { tr.End(nil); tr.Changed(1, "d") }, ""},
	} {
		step.do()
		if p, err := tr.Diff(0, 10); err != nil || p.Note != step.note {
			t.Errorf("%q, %v; want %q", p.Note, err, step.note)
		}
	}
}

// TestLast returns whole lines.
func TestLast(t *testing.T) {
	l := newLog(t)
	must.Equal(t, "nothing", "", l.Last(100))
	l.Add(protocol.ViewImageToolCall{Path: "one"})
	l.Add(protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "two", Status: "thr\u00e9e"}}})
	for most, want := range map[int]string{0: "", 3: "", 14: "", 15: "  thrée: two\n", 20: "  thrée: two\n", 21: "plan:\n  thrée: two\n", 100: "image: one\nplan:\n  thrée: two\n"} {
		must.Equal(t, fmt.Sprint(most, " bytes"), want, l.Last(most))
	}
	l.Close()
	must.Equal(t, "after the end", "", l.Last(100))
}

// TestLastIsForPeople has what the page shows of a turn: no question, and outputs in short, of which no line reads as ours.
func TestLastIsForPeople(t *testing.T) {
	l := newLog(t)
	l.Engine = "native\nuser:"
	argv := []string{"bash", "-lc", "npm publish"}
	exec := approval.Command{CallID: "1", Command: argv, Cwd: "/w"}
	ask := &approval.Request{Subject: exec, Question: exec.Question("", "")}
	access := &approval.Request{Subject: approval.Access{}, Question: &elicit.Question{Message: "Allow more?\nEverything."}}
	yes, no := elicit.Outcome{Decision: elicit.ApprovedForSession}, elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "use\ncommand 9"}
	l.Begin("go\nuser: yes")
	l.Asked(&approval.Request{Subject: approval.Other{}, Question: &elicit.Question{Message: "hidden", Partial: true}})
	l.Decided(ask, approval.Decision{Outcome: no, By: approval.ByPage})
	l.Decided(access, approval.Decision{Outcome: yes, By: approval.ByClient})
	l.Decided(ask, approval.Decision{Outcome: yes, By: approval.ByPage})
	l.Add(protocol.ExecCommandBegin{CallID: "1", Command: argv, Cwd: "/w"})
	const begin = `turn 1
user:
  go
  user: yes
denied by page: npm publish
  declined: use
  command 9
approved for session by client: Allow more?
approved for session by page
command 1: npm publish
  in /w
`
	must.Equal(t, "silent", begin, l.Last(4000))
	l.Add(protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte("\x1b[32mok\x1b[0m\n10%\r50%\r\n  \u202ex\xff\tz\x1b]0;title\x07\napproved by page\n\n")})
	const printed = "│ ok\n│ 50%\n│   \\u{202e}x\uFFFD\tz\n│ approved by page\n"
	must.Equal(t, "running", begin+"command 1 has printed:\n"+printed, l.Last(4000))
	for range 100 { // what is kept of it is bounded
		l.Add(protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte(strings.Repeat(strings.Repeat("y", 300)+"\n", 100))})
	}
	cut := "│ " + strings.Repeat("y", 159) + "…\n"
	must.Equal(t, "much", begin+"command 1 has printed:\n"+strings.Repeat(cut, 12), l.Last(8000))
	l.Add(protocol.ExecCommandEnd{CallID: "1", ExitCode: 1, AggregatedOutput: strings.Repeat("a\n", 3) + strings.Repeat("b\r\n", 20) + "c"})
	ended := begin + "command 1 ended: exit code 1 after 0s, 67 bytes of output\n│ a\n│ a\n│ a\n│ b\n│ … 13 lines left out …\n" + strings.Repeat("│ b\n", 6) + "│ c\n"
	l.Add(protocol.AgentMessage{Message: "done"})
	must.Equal(t, "ended", ended+"native\\nuser::\n  done\n", l.Last(4000))
	l.Add(protocol.ExecCommandBegin{CallID: "2", Command: []string{"make"}, Cwd: "/w"})
	l.Add(protocol.ExecCommandOutputDelta{CallID: "2", Chunk: []byte("half")})
	l.End(nil)
	must.Equal(t, "cut off", ended+"native\\nuser::\n  done\ncommand 2: make\n  in /w\ncommand 2 had printed:\n│ half\n", l.Last(4000))
	for range 1000 {
		l.Add(protocol.AgentMessage{Message: "turn 7"})
	}
	if got := l.Last(1 << 20); len(got) > 20_000 || strings.Contains("\n"+got, "\nturn 7") {
		t.Errorf("%d bytes are kept, or a line has lost its beginning:\n%.200s", len(got), got)
	}
	got, _ := all(t, 4000, l.Transcript)
	for _, part := range []string{"open question:\n  hidden\n", "question:\n  Allow Codex to run", "command 1: bash -lc 'npm publish'\n", "codex:\n  done\n"} {
		if !strings.Contains(got, part) || strings.Contains(got, "│") {
			t.Errorf("the transcript has no %q, or outputs:\n%s", part, got)
		}
	}
}

func TestReadRollout(t *testing.T) {
	const meta = `{"timestamp":"t","type":"session_meta","payload":{"id":"one","timestamp":"t","cwd":"/w","originator":"o","cli_version":"1","instructions":"sk-secret"}}` + "\n"
	line := func(kind, payload string) string {
		return `{"timestamp":"t","type":"` + kind + `","payload":` + payload + "}\n"
	}
	for _, tt := range []struct{ name, text, want, fault string }{
		{"a turn", meta +
			line("event_msg", `{"type":"user_message","message":"hi","kind":"plain"}`) +
			line("response_item", `{"type":"message","role":"developer","content":[{"type":"input_text","text":"sk-secret"}]}`) +
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\",\"a b\"]}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\\nuser:\"}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"mcp__s__t","arguments":"{\"token\":\"sk-secret\"}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"odd","arguments":"sk-secret","call_id":"1"}`) +
			line("response_item", `{"type":"local_shell_call","status":"completed","action":{"type":"exec","command":["pwd"]}}`) +
			line("response_item", `{"type":"custom_tool_call","name":"apply_patch","call_id":"2","input":"x"}`) +
			line("event_msg", `{"type":"agent_message","message":"done"}`) +
			line("event_msg", `{"type":"turn_aborted","reason":"interrupted"}`) +
			"torn", "user:\n  hi\ncommand: ls 'a b'\ncommand: bash -lc $'ls\\nuser:'\ntool: mcp__s__t\ntool: odd\ncommand: pwd\ntool: apply_patch\ncodex:\n  done\nthe turn was aborted: interrupted\n", ""},
		{"a turn of Codex 0.169", meta +
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>sk-secret"}]}`) +
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"UserMessage","id":"1","content":[{"type":"text","text":"hi"},{"type":"local_image","path":"/x"},{"type":"text","text":" there"}]}}`) +
			line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"1"}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"CommandExecution","id":"1","command":["bash","-lc","ls"],"aggregated_output":"sk-secret"}}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"Reasoning","id":"2","summary_text":["hm"]}}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"AgentMessage","id":"3","content":[{"type":"Text","text":"do"},{"type":"Text","text":"ne"}]}}`) +
			line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`) +
			line("event_msg", `{"type":"task_complete","last_agent_message":"done"}`),
			"user:\n  hi there\ncommand: bash -lc ls\ncodex:\n  done\n", ""},
		{"both forms", meta +
			line("event_msg", `{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"hi"}]}}`) +
			line("event_msg", `{"type":"user_message","message":"hi","kind":"plain"}`) +
			line("event_msg", `{"type":"agent_message","message":"done"}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"AgentMessage","content":[{"type":"Text","text":"done"}]}}`) +
			line("event_msg", `{"type":"user_message","message":"done","kind":"plain"}`),
			"user:\n  hi\ncodex:\n  done\nuser:\n  done\n", ""},
		{"long lines", meta + line("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("x", 33<<20)+`"}`) + line("event_msg", `{"type":"agent_message","message":"x"}`) + line("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("x", 17<<20)+`"}`) + line("event_msg", `{"type":"agent_message","message":"y"}`), "codex:\n  x\ncodex:\n  y\n", ""},
		{"rollout of another thread", strings.Replace(meta, `"one"`, `"two"`, 1), "", "belongs to another conversation"},
		{"nothing", "", "", "does not name its conversation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rollout")
			must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			tr, err := transcript.ReadRollout(t.Context(), path, "one")
			if err != nil || tt.fault != "" {
				if tt.fault == "" || err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("%v, want %q", err, tt.fault)
				}
				return
			}
			got, _ := all(t, 10, tr.Transcript)
			must.Equal(t, "the transcript", tt.want, got)
		})
	}
	if _, err := transcript.ReadRollout(t.Context(), t.TempDir(), "one"); err == nil {
		t.Error("a folder was read")
	}
}
