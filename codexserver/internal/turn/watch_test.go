package turn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			err  error
			want protocol.TurnStatus
		}{
			{nil, protocol.StatusCompleted},
			{&engine.TurnError{Message: "no"}, protocol.StatusFailed},
			{errors.New("no"), protocol.StatusFailed},
			{fmt.Errorf("turn: %w", &engine.AbortError{}), protocol.StatusAborted},
		} {
			c := newWatch(changes.Options{})
			if got := c.So(); got.Status != "" || got.DurationMS != 0 {
				t.Errorf("before the turn: %+v", got)
			}
			c.Begin(t.Context(), protocol.SessionConfigured{SessionID: "t", Model: "m"}, nil)
			<-time.After(time.Second)
			status := func(want protocol.TurnStatus) {
				t.Helper()
				if got := c.So(); got.Status != want {
					t.Errorf("status %q, want %q", got.Status, want)
				}
			}
			status(protocol.StatusRunning)
			first, second := &approval.Request{Event: protocol.PatchApprovalRequest{CallID: "1"}}, &approval.Request{Event: protocol.ExecApprovalRequest{CallID: "2"}}
			c.Asked(first)
			status(protocol.StatusWaiting)
			c.Asked(second)
			c.Decided(first, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied}})
			status(protocol.StatusWaiting)
			c.Decided(second, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}})
			status(protocol.StatusRunning)
			c.End(tt.err)
			status(tt.want)
			<-time.After(time.Second)
			if got := c.So(); got.DurationMS != 1000 || got.ThreadID != "t" || got.Model != "m" {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestCommands approves a command after the sandbox stopped it. The report has both runs, and
// names who approved the second one, and the folder of those that ran in another one than the turn.
func TestCommands(t *testing.T) {
	c := newWatch(changes.Options{})
	c.Event(protocol.ExecCommandBegin{CallID: "0", Command: []string{"before", "the", "turn"}})
	for range 6 {
		c.Event(protocol.ExecCommandBegin{CallID: "0"})
	}
	c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
	run := protocol.ExecCommandBegin{CallID: "1", Command: []string{"touch", "/x\x1b[2J"}, Cwd: "/w"}
	c.Event(run)
	c.Event(protocol.ExecCommandEnd{CallID: "1", ExitCode: 1})
	c.Decided(&approval.Request{Event: protocol.ExecApprovalRequest{CallID: "1"}}, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.ApprovedForSession}, By: approval.ByClient})
	c.Event(run)
	c.Event(protocol.ExecCommandBegin{CallID: "2", Command: []string{"sleep", strings.Repeat("9", 1<<20)}, Cwd: "/w/sub"})
	c.Event(protocol.ExecCommandEnd{CallID: "1", Duration: protocol.Duration(time.Second)})
	c.Event(protocol.ExecCommandEnd{CallID: "unknown"})
	got := c.So().Commands
	want := []protocol.Command{
		{ID: 8, Command: `touch $'/x\x1b[2J'`, ExitCode: new(1), DurationMS: new(int64(0))},
		{ID: 9, Command: `touch $'/x\x1b[2J'`, ExitCode: new(0), DurationMS: new(int64(1000)), ApprovedBy: string(approval.ByClient)},
		{ID: 10, Command: got[2].Command, Cwd: "/w/sub"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("(-want +got)\n" + d)
	}
	if s := got[2].Command; !strings.HasPrefix(s, "sleep 999") || !strings.HasSuffix(s, fmt.Sprintf("…%d bytes…", 1<<20+len("sleep ")-(600-len("…9223372036854775807 bytes…")))) || len(s) > 600 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}

func TestRefusedIsShown(t *testing.T) {
	c := newWatch(changes.Options{})
	c.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	files := map[string]protocol.FileChange{}
	for i := range 7 {
		files[fmt.Sprint("/w/", i)] = protocol.FileChange{}
	}
	denied := approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonTimeout, Feedback: "no\nway"}, By: approval.ByRule}
	question := &elicit.Question{Message: "Allow the server x to call y?"}
	c.Decided(&approval.Request{Event: protocol.PatchApprovalRequest{Changes: files}, Question: question}, denied)
	c.Decided(&approval.Request{Event: protocol.RawEvent{Type: "approval_request"}, Question: question}, denied)
	c.Decided(&approval.Request{Event: protocol.RawEvent{Type: "approval_request"}, Question: question}, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}})
	c.Decided(&approval.Request{Event: protocol.ExecApprovalRequest{Command: []string{"git", "push"}, Cwd: "/w"}}, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Abort}})
	want := []protocol.Refusal{
		{Kind: "patch", What: "/w/0, /w/1, /w/2, /w/3, /w/4, … (7 files)", Why: `declined: no\nway`, By: string(approval.ByRule), Reason: string(elicit.ReasonTimeout)},
		{Kind: "other", What: "Allow the server x to call y?", Why: `declined: no\nway`, By: string(approval.ByRule), Reason: string(elicit.ReasonTimeout)},
		{Kind: "command", What: "git push", Cwd: "/w", Why: "declined"},
	}
	if d := cmp.Diff(want, c.So().Refused); d != "" {
		t.Error("(-want +got)\n" + d)
	}
}

// TestPatches checks that several patches of one file become one change.
func TestPatchesOfOneFile(t *testing.T) {
	add, remove := protocol.FileChange{Add: &protocol.FileContent{Content: "1\n2"}}, protocol.FileChange{Delete: &protocol.FileContent{Content: "1\n"}}
	update := protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1,2 @@\n-1\n+2\n+3\n"}}
	move := func(to string) protocol.FileChange {
		return protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: "+1\n", MovePath: &to}}
	}
	type step = map[string]protocol.FileChange
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"each kind", []step{{"/w/a": add, "/w/d": remove, "/w/u": update, "/x": add, "/w/m": move("/w/n")}}, "add >/x +2-0, add >a +2-0, delete >d +0-1, rename m>n +1-0, update >u +2-1"},
		{"added and changed", []step{{"/w/a": add}, {"/w/a": update}}, "add >a +4-1"},
		{"added and deleted", []step{{"/w/a": add}, {"/w/a": remove}}, ""},
		{"deleted and added", []step{{"/w/a": remove}, {"/w/a": add}}, "update >a +2-1"},
		{"changed and deleted", []step{{"/w/a": update}, {"/w/a": remove}}, "delete >a +2-2"},
		{"added and moved", []step{{"/w/a": add}, {"/w/a": move("/w/b")}}, "add >b +3-0"},
		{"moved and changed", []step{{"/w/a": move("/w/b")}, {"/w/b": update}}, "rename a>b +3-1"},
		{"moved twice", []step{{"/w/a": move("/w/b")}, {"/w/b": move("/w/c")}}, "rename a>c +2-0"},
		{"moved and deleted", []step{{"/w/a": move("/w/b")}, {"/w/b": remove}}, "delete >a +1-1"},
	} {
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
		for i, s := range append(tt.steps, step{"/w/failed": add}) {
			c.Event(protocol.PatchApplyBegin{CallID: "1", Changes: s})
			c.Event(protocol.PatchApplyEnd{CallID: "1", Success: i < len(tt.steps)})
		}
		var got []string
		for _, change := range c.So().Changes {
			got = append(got, fmt.Sprintf("%s %s>%s +%d-%d", change.Kind, change.From, change.Path, *change.Added, *change.Removed))
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}

// TestManyPatches checks that files of patches beyond the limit are counted.
func TestManyPatches(t *testing.T) {
	c := newWatch(changes.Options{})
	c.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	files := map[string]protocol.FileChange{}
	for i := range 10_003 {
		files[fmt.Sprint("/w/", i)] = protocol.FileChange{Add: &protocol.FileContent{}}
	}
	c.Event(protocol.PatchApplyBegin{CallID: "1", Changes: files})
	c.Event(protocol.PatchApplyEnd{CallID: "1", Success: true})
	c.End(nil)
	r := c.So()
	got := readBack(t, r.JSON(setting.DefaultResult))
	if n := len(got.Changes) + got.Truncated.Changes; n != len(files) {
		t.Errorf("%d files, want %d", n, len(files))
	}
}

// TestUsage checks that a turn's usage is the difference of the thread's counts.
func TestUsage(t *testing.T) {
	count := func(total, last int64) protocol.TokenCount {
		return protocol.TokenCount{
			Info:       &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: total}, LastTokenUsage: protocol.TokenUsage{InputTokens: last}},
			RateLimits: &protocol.RateLimits{Primary: &protocol.RateLimitWindow{UsedPercent: float64(total)}},
		}
	}
	past := func(m protocol.EventMsg) (s protocol.SessionConfigured) {
		raw, err := protocol.AppendEvent(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		s.InitialMessages = append(s.InitialMessages, raw)
		return s
	}
	said := protocol.AgentMessage{Message: "x"}
	for _, tt := range []struct {
		name        string
		thread      protocol.SessionConfigured
		used        *protocol.TokenUsage
		events      []protocol.EventMsg
		turn, total int64
	}{
		{"a new thread", protocol.SessionConfigured{}, nil, []protocol.EventMsg{protocol.TokenCount{}, said, count(5, 5), said, count(9, 4)}, 9, 9},
		{"a later turn", protocol.SessionConfigured{}, &protocol.TokenUsage{InputTokens: 100}, []protocol.EventMsg{count(100, 7), said, count(105, 5)}, 5, 105},
		{"the past has a count", past(count(100, 7)), nil, []protocol.EventMsg{count(100, 7), said, count(105, 5)}, 5, 105},
		{"the past has no count", past(said), nil, []protocol.EventMsg{said, count(105, 5), said, count(106, 1)}, 6, 106},
		{"the first count includes the past", past(said), nil, []protocol.EventMsg{count(100, 7), said, count(105, 5)}, 5, 105},
		{"a count that falls", protocol.SessionConfigured{}, &protocol.TokenUsage{InputTokens: 100}, []protocol.EventMsg{count(3, 3)}, 0, 3},
	} {
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), tt.thread, tt.used)
		for _, m := range tt.events {
			c.Event(m)
		}
		r := c.So()
		want := &protocol.TurnUsage{Turn: protocol.Tokens{Input: tt.turn}, Thread: protocol.Tokens{Input: tt.total}}
		if d := cmp.Diff(want, r.Usage); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
	}
	c := newWatch(changes.Options{})
	c.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	if got := c.So().Usage; got != nil {
		t.Errorf("usage %+v of a turn without a count", got)
	}
}

// TestReportIsACopy checks that a report has the last plan, and shares no list with the
// collector.
func TestReportIsACopy(t *testing.T) {
	c := newWatch(changes.Options{})
	c.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	c.Event(protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "one"}}})
	c.Event(protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "two"}}})
	c.Event(protocol.ExecCommandBegin{CallID: "1", Command: []string{"ls"}})
	before := c.So()
	c.Event(protocol.ExecCommandEnd{CallID: "1"})
	c.End(nil)
	if before.Commands[0].ExitCode != nil || before.Plan[0].Step != "two" || before.Status != protocol.StatusRunning {
		t.Errorf("%+v", before)
	}
	after := c.So()
	if d := cmp.Diff([]protocol.Change{}, after.Changes, cmpopts.EquateEmpty()); d != "" || after.Commands[0].ExitCode == nil {
		t.Errorf("%+v", after)
	}
}
