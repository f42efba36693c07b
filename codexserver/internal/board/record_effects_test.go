package board_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// shown returns the lines of a record in short, without their times. Ids are numbers.
func shown(t *testing.T, record string) string {
	t.Helper()
	var b strings.Builder
	number := func(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }
	for text := range strings.Lines(record) {
		l, err := audit.Parse([]byte(text), true)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s%s%s", number(l.ID), l.Effect, l.Decision)
		if l.Of != "" {
			b.WriteString(" " + number(l.Of))
		}
		if l.DecidedBy != "" {
			b.WriteString(" by " + number(l.DecidedBy))
		}
		if l.Exit != nil {
			fmt.Fprintf(&b, " exit %d", *l.Exit)
		}
		fmt.Fprintf(&b, " %s%s%s", l.Kind, l.Command, l.Tool)
		for _, f := range l.Files {
			fmt.Fprintf(&b, " %s=%.6s", filepath.Base(f.Path), f.Sum)
		}
		if l.Missed > 0 {
			fmt.Fprintf(&b, " missed %d", l.Missed)
		}
		b.WriteString(" " + l.Words + "\n")
	}
	return b.String()
}

// TestEffects checks that each effect has one beginning and one end, and names its decision.
func TestEffects(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	for path, err := range map[string]error{file: os.WriteFile(file, []byte("new\n"), 0o600), link: os.Symlink(file, link)} {
		if err != nil {
			t.Fatal(path, err)
		}
	}
	thread := approval.Thread{ID: "t"}
	patch := protocol.PatchApplyBegin{CallID: "c", Changes: map[string]protocol.FileChange{
		file: {Add: &protocol.FileContent{Content: "new\n"}}, filepath.Join(dir, "gone"): {Delete: &protocol.FileContent{}}, link: {Add: &protocol.FileContent{}},
	}}
	call := protocol.MCPInvocation{Server: "s", Tool: "t", Arguments: []byte(`{"secret":1}`)}
	failed := "it failed"
	for _, tt := range []struct {
		name   string
		asked  []string // the answers to questions about the call c
		events []protocol.EventMsg
		want   string
	}{
		{"asked", []string{servertest.Accept}, []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c", Command: []string{"ls"}}, protocol.ExecCommandEnd{CallID: "c", ExitCode: 3},
		}, "1approved [] \n2begins by 1 command[ls] \nends 2 exit 3 [] \n"},
		{"not asked", nil, []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c", Command: []string{"ls"}}, protocol.ExecCommandEnd{CallID: "c"},
		}, "1begins command[ls] \nends 1 exit 0 [] \n"},
		{"an approval is for one effect", []string{servertest.Accept}, []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}, protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"},
		}, "1approved [] \n2begins by 1 command[] \nends 2 exit 0 [] \n3begins command[] \nends 3 exit 0 [] \n"},
		{"denied after an approval", []string{servertest.Accept, servertest.Decline}, []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"},
		}, "1approved [] \n2denied [] \n3begins command[] \nends 3 exit 0 [] \n"},
		{"no end", nil, []protocol.EventMsg{protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandBegin{CallID: "d"}},
			"1begins command[] \n2begins command[] \nends 1 [] the turn ended before the end was reported\nends 2 [] the turn ended before the end was reported\n"},
		{"begun twice", nil, []protocol.EventMsg{protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}},
			"1begins command[] \nends 1 [] its end was not reported\n2begins command[] \nends 2 exit 0 [] \n"},
		{"a patch", nil, []protocol.EventMsg{patch, protocol.PatchApplyEnd{CallID: "c", Success: true}},
			"1begins patch[] \nends 1 exit 0 [] a=7aa7a5 gone=absent link=a link \n"},
		{"a patch that fails", nil, []protocol.EventMsg{protocol.PatchApplyBegin{CallID: "c"}, protocol.PatchApplyEnd{CallID: "c", Stderr: "no\nway"}},
			"1begins patch[] \nends 1 exit 1 [] no way\n"},
		{"a tool", nil, []protocol.EventMsg{protocol.MCPToolCallBegin{CallID: "c", Invocation: call}, protocol.MCPToolCallEnd{CallID: "c", Result: protocol.MCPToolCallResult{Err: &failed}}},
			"1begins tool[]s/t \nends 1 exit 1 [] it failed\n"},
		{"refused", nil, []protocol.EventMsg{
			protocol.BackgroundEvent{Message: "hello"},
			protocol.BackgroundEvent{Refused: &protocol.Refused{Command: []string{"rm"}, Reason: "never"}},
			protocol.BackgroundEvent{Refused: &protocol.Refused{Changes: patch.Changes, Reason: "never"}},
			protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "x", Reason: "never"}},
		}, "refused command[rm] never\nrefused patch[] never\nrefused tool[]x never\n"},
		{"nothing", nil, []protocol.EventMsg{protocol.TaskStarted{}, protocol.AgentMessage{Message: "hello"}, protocol.ExecCommandEnd{CallID: "c"}, protocol.TaskComplete{}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var record strings.Builder
			b := board.New(&board.Options{Record: board.NewRecord(&record)}, nil)
			for _, answer := range tt.asked {
				leave := b.Attach(newClient(servertest.Say(answer), nil))
				b.Decide(t.Context(), request())
				leave()
			}
			for _, m := range tt.events {
				line, files := turnlog.EffectOf(m)
				b.Note(thread, "turn", line, files)
			}
			b.EndTurn(thread)
			b.EndTurn(thread)
			if diff := cmp.Diff(tt.want, shown(t, record.String())); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(record.String(), "secret") {
				t.Error("the record has the arguments of a tool")
			}
		})
	}
}

// unsteady is a writer that fails at some writes.
type unsteady struct {
	bytes.Buffer
	fails map[int]bool
	n     int
}

func (u *unsteady) Write(b []byte) (int, error) {
	if u.n++; u.fails[u.n] {
		return 0, errors.New("no room")
	}
	return u.Buffer.Write(b)
}

// TestEffectFaults fails each write once. An approval that was not written counts for nothing, and the next line
// says how many lines are missing.
func TestEffectFaults(t *testing.T) {
	for _, tt := range []struct {
		fails   map[int]bool
		decided elicit.Decision
		want    string
	}{
		{nil, elicit.Approved, "1approved [] \n2begins by 1 command[] \nends 2 exit 0 [] \nrefused tool[]  missed 0\n"},
		{map[int]bool{1: true}, elicit.Denied, "2begins command[] missed 1 \nends 2 exit 0 [] \nrefused tool[] \n"},
		{map[int]bool{2: true}, elicit.Approved, "1approved [] \nrefused tool[] missed 1 \n"},
		{map[int]bool{3: true}, elicit.Approved, "1approved [] \n2begins by 1 command[] \nrefused tool[] missed 1 \n"},
		{map[int]bool{2: true, 3: true}, elicit.Approved, "1approved [] \n"},
	} {
		u := &unsteady{fails: tt.fails}
		var log servertest.Journal
		b := board.New(&board.Options{Record: board.NewRecord(u), Logger: log.Logger()}, nil)
		leave := b.Attach(newClient(servertest.Say(servertest.Accept), nil))
		d := b.Decide(t.Context(), request())
		leave()
		for _, m := range []protocol.EventMsg{
			protocol.ExecCommandBegin{CallID: "c"}, protocol.ExecCommandEnd{CallID: "c"}, protocol.BackgroundEvent{Refused: &protocol.Refused{}},
		} {
			line, files := turnlog.EffectOf(m)
			b.Note(approval.Thread{ID: "t"}, "turn", line, files)
		}
		if diff := cmp.Diff(strings.ReplaceAll(tt.want, " missed 0", ""), shown(t, u.String())); diff != "" || d.Decision != tt.decided {
			t.Errorf("%v: %s\n%s", tt.fails, d.Decision, diff)
		}
		if noted := strings.Contains(log.String(), "not recorded"); noted != (len(tt.fails) > 0) {
			t.Errorf("%v: logged %s", tt.fails, &log)
		}
	}
}

// TestEffectOfUnrecordable approves a question that JSON cannot have. The approval counts for nothing, and the next line
// says that one is missing.
func TestEffectOfUnrecordable(t *testing.T) {
	var record bytes.Buffer
	b := board.New(&board.Options{Record: board.NewRecord(&record)}, nil)
	leave := b.Attach(newClient(servertest.Say(servertest.Accept), nil))
	r := request()
	r.Event = protocol.ExecApprovalRequest{CallID: "c", Command: []string{"echo", "\xff"}}
	d := b.Decide(t.Context(), r)
	leave()
	line, files := turnlog.EffectOf(protocol.BackgroundEvent{Refused: &protocol.Refused{}})
	b.Note(approval.Thread{ID: "t"}, "turn", line, files)
	if diff := cmp.Diff("refused tool[] missed 1 \n", shown(t, record.String())); diff != "" || d.Decision != elicit.Denied {
		t.Errorf("%s\n%s", d.Decision, diff)
	}
}
