package turn_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// recorder is a turn and what the host of a thread does for it.
type recorder struct {
	*turn.Turn
	log  *transcript.Log // of the thread
	diff string          // at the end
}

func newWatch(o changes.Options) *recorder { return &recorder{turn.New(o), transcript.New(""), ""} }

func (r *recorder) Event(m protocol.EventMsg) { r.Turn.Add("", r.log, m) }

func (r *recorder) Asked(q *approval.Request) { r.Turn.Open(asked(q)) }

func (r *recorder) End(err error) {
	r.diff = r.Conclude(err)
	r.Turn.End()
}

// end ends a turn with an error, as its thread does.
func end(t *turn.Turn, err error) {
	t.Conclude(err)
	t.End()
}

func (r *recorder) Decided(q *approval.Request, d approval.Decision) { r.Turn.Decided(asked(q), d) }

func asked(q *approval.Request) *approval.Request {
	q.Question = cmp.Or(q.Question, &elicit.Question{})
	return q
}

// TestStatus checks the status and the time of a turn, and how one ends that has not begun.
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
			c, never := newWatch(changes.Options{}), newWatch(changes.Options{})
			if got := c.So(); got.Status != "" || got.DurationMS != 0 {
				t.Errorf("before the turn: %+v", got)
			}
			c.Begin(t.Context(), protocol.SessionConfigured{SessionID: "t", Model: "m"}, nil)
			<-time.After(time.Second)
			status := func(want protocol.TurnStatus) {
				t.Helper()
				must.Equal(t, "the status", want, c.So().Status)
			}
			status(protocol.StatusRunning)
			first, second := &approval.Request{Subject: approval.Patch{CallID: "1"}}, &approval.Request{Subject: approval.Command{CallID: "2"}}
			c.Asked(first)
			status(protocol.StatusWaiting)
			c.Asked(second)
			c.Decided(first, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied}})
			status(protocol.StatusWaiting)
			c.Decided(second, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Approved}})
			status(protocol.StatusRunning)
			c.End(tt.err)
			status(tt.want)
			if never.End(tt.err); never.So().Status != tt.want || never.So().DurationMS != 0 {
				t.Errorf("not begun: %+v", never.So())
			}
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
	for range 7 { // of earlier turns
		c.log.Begins(protocol.ExecCommandBegin{})
	}
	c.Begin(t.Context(), protocol.SessionConfigured{Cwd: "/w"}, nil)
	run := protocol.ExecCommandBegin{CallID: "1", Command: []string{"touch", "/x\x1b[2J"}, Cwd: "/w"}
	c.Event(run)
	c.Event(protocol.ExecCommandEnd{CallID: "1", ExitCode: 1})
	c.Decided(&approval.Request{Subject: approval.Command{CallID: "1"}}, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.ApprovedForSession}, By: approval.ByClient})
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
	must.Equal(t, "the commands", want, got)
	if s := got[2].Command; !strings.HasPrefix(s, "sleep 999") || !strings.HasSuffix(s, fmt.Sprintf("…%d bytes…", 1<<20+len("sleep ")-(600-len("…9223372036854775807 bytes…")))) || len(s) > 600 {
		t.Errorf("%d bytes: %s", len(s), s)
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
	past := func(all ...protocol.EventMsg) (s protocol.SessionConfigured) {
		for _, m := range all {
			raw := must.Get(protocol.AppendEvent(nil, m))(t)
			s.InitialMessages = append(s.InitialMessages, raw)
		}
		s.InitialMessages = append(s.InitialMessages, []byte("no JSON"))
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
		{"the past has counts", past(count(40, 7), count(100, 7), protocol.TokenCount{RateLimits: &protocol.RateLimits{}}), nil, []protocol.EventMsg{count(100, 7), said, count(105, 5)}, 5, 105},
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
		must.Equal(t, tt.name, want, r.Usage)
	}
	c := newWatch(changes.Options{})
	c.Begin(t.Context(), protocol.SessionConfigured{}, nil)
	if got := c.So().Usage; got != nil {
		t.Errorf("usage %+v of a turn without a count", got)
	}
}

// TestReportIsACopy checks that a report has the last plan, and shares no list with the collector.
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
	if len(after.Changes) > 0 || after.Commands[0].ExitCode == nil {
		t.Errorf("%+v", after)
	}
}

// TestDoing checks the line that a person sees of an event. A text that would set a terminal's title, change its colour, the
// direction of writing and the line, or cover other lines has every hidden character visible.
func TestDoing(t *testing.T) {
	const (
		hostile  = "a\x1b]2;PWNED\x07\x1b[31mR\u202eE\nD\r\tx\u009by\u2028z\u0000"
		harmless = `a\x1b]2;PWNED\x07\x1b[31mR\u{202e}E D x\u{9b}y\u{2028}z\x00`
	)
	for _, tt := range []struct {
		event protocol.EventMsg
		want  string
	}{
		{protocol.ExecCommandBegin{Command: []string{"echo", "b" + strings.Repeat("🦊", 300)}}, "running echo 'b" + strings.Repeat("🦊", 185) + "…"},
		{protocol.ExecCommandBegin{Command: []string{"echo", hostile, "two words"}}, `running echo $'a\x1b]2;PWNED\x07\x1b[31mR\u{202e}E\nD\r\tx\u{9b}y\u{2028}z\x00' 'two words'`},
		{protocol.MCPToolCallBegin{Invocation: protocol.MCPInvocation{Server: hostile, Tool: "t"}}, "calling " + harmless + "/t"},
		{protocol.BackgroundEvent{Message: hostile}, harmless},
		{protocol.AgentMessage{Message: hostile}, harmless},
		{protocol.AgentMessage{Message: "\n \n" + strings.Repeat("\u202e", 1000)}, strings.Repeat(`\u{202e}`, 25) + "…"},
		{protocol.AgentMessage{Message: "✔\ufe0f done"}, "✔ done"},
		{protocol.StreamError{Message: "asking again in 7s: the provider answered 429"}, "asking again in 7s: the provider answered 429"},
		{protocol.ModelReroute{FromProvider: "a", FromModel: "k", ToProvider: "b", ToModel: "m", Reason: "its limit"}, "m of b answers from now on, in place of k of a: its limit"},
		{protocol.ModelReroute{FromModel: "k", ToModel: "m", Reason: "its limit"}, "m answers from now on, in place of k: its limit"},
		{protocol.TokenCount{}, ""},
	} {
		work := turn.New(changes.Options{})
		if got := work.Add("", transcript.New(""), tt.event).Doing; got != tt.want {
			t.Errorf("%T: %q, want %q", tt.event, got, tt.want)
		}
		if got := work.State().Words(); tt.want != "" && got != tt.want || tt.want == "" && got != "starting" {
			t.Errorf("%T: the turn is %q, want %q", tt.event, got, tt.want)
		}
	}
}

// readBack returns the result that a text has.
func readBack(t testing.TB, out []byte) (r protocol.TurnResult) {
	t.Helper()
	must.OK(t, json.Unmarshal(out, &r))
	return r
}

// TestLeast fills the members of the smallest result that are never cut.
func TestLeast(t *testing.T) {
	for _, char := range []string{"x", `"`, "\\", "\x01", "\xff", "é", "\u2028"} {
		long := strings.Repeat(char, 1000)
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), protocol.SessionConfigured{SessionID: long, Model: long}, nil)
		for range 4 {
			c.Event(protocol.ModelReroute{FromProvider: long, FromModel: long, ToProvider: long, ToModel: long, Reason: long})
		}
		c.End(nil)
		r := c.So()
		r.Content = long
		out := r.JSON(protocol.MinResult)
		if len(out) > protocol.MinResult || !strings.Contains(string(out), `"rerouted":[{`) {
			t.Errorf("%q: %d bytes: %s", char, len(out), out)
		}
	}
}
