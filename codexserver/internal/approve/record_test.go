package approve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func panics(context.Context) (string, error) { panic("a fault of the desk") }

// newClient returns a place that asks as the clients of a server are asked: with nil one that cannot be asked.
func newClient(a servertest.Answer, o *elicit.Options) *approve.Place {
	var client elicit.Client
	if a != nil {
		client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	asker := elicit.NewAsker(elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		words, err := a(ctx)
		return json.RawMessage(words), err
	}), client, o)
	return &approve.Place{Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		return asker.Ask(ctx, r.Question), nil
	}}
}

// request asks to run `git init`.
func request() *approval.Request {
	exec := approval.Command{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"}
	return &approval.Request{Thread: approval.Thread{ID: "t"}, Subject: exec, Question: exec.Question("", "")}
}

// inviterDesk is a desk with an invitation that may panic.
type inviterDesk struct {
	*servertest.Desk
	invites func() string
}

func (d inviterDesk) Invite() string { return d.invites() }

// decide has a client answer a request.
func decide(t *testing.T, b *approve.Board, answer string, r *approval.Request) approval.Decision {
	t.Helper()
	defer b.Attach(newClient(servertest.Say(answer), nil))()
	return b.Decide(t.Context(), r, false)
}

// TestRecordFails checks that an approval that cannot be recorded does not count, and that the failure is logged and told.
func TestRecordFails(t *testing.T) {
	for _, tt := range []struct {
		name    string
		record  *record.Record
		subject approval.Subject
		want    string
	}{
		{"no writer", record.To(nil), request().Subject, ""},
		{"a writer that fails", record.To(brokenWriter{}), request().Subject, "error=broken"},
		{"a command that JSON cannot have", record.To(&strings.Builder{}), approval.Command{Command: []string{"echo", "\xff"}}, "not recorded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log servertest.Journal
			b := approve.New(&approve.Options{Record: tt.record, Logger: log.Logger()}, nil)
			r := request()
			r.Subject = tt.subject
			want := elicit.Approved
			if tt.want != "" {
				want = elicit.Denied
			}
			got := decide(t, b, servertest.Accept, r)
			if told := strings.Contains(got.ForModel()+strings.Join(got.Remarks, ""), "could not be recorded"); got.Decision != want || told != (tt.want != "") {
				t.Errorf("decided %q, %q, %q", got.Decision, got.ForModel(), got.Remarks)
			}
			if noted := strings.Contains(log.String(), "not recorded"); noted != (tt.want != "") || !strings.Contains(log.String(), tt.want) {
				t.Errorf("logged %s", &log)
			}
		})
	}
}

// TestDenialIsNotRecorded checks that a denial stays what it is when it cannot be recorded, and what an approval becomes.
func TestDenialIsNotRecorded(t *testing.T) {
	words := "the approval could not be recorded, so it does not count: broken"
	for answer, want := range map[string]approval.Decision{
		servertest.Decline: {Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Detail: "declined by the client"}},
		servertest.Cancel:  {Outcome: elicit.Outcome{Decision: elicit.Abort, Reason: elicit.ReasonCancelled, Detail: "cancelled by the client"}},
		servertest.ForSession: {
			Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: words, Detail: words, Level: slog.LevelWarn},
			Remarks: []string{"Nothing was run: " + words + "."},
		},
	} {
		b := approve.New(&approve.Options{Record: record.To(brokenWriter{})}, nil)
		got := decide(t, b, answer, request())
		want.By = approval.ByClient
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(elicit.Outcome{}), cmpopts.IgnoreFields(elicit.Outcome{}, "Took")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
}

// TestRecord records each kind of question, with each kind of decision.
func TestRecord(t *testing.T) {
	accessed := approval.Access{Access: protocol.Access{Folder: "/work", Mode: protocol.SandboxDangerFullAccess, Policy: protocol.ApprovalNever}, Client: "Cursor"}
	to := "/work/to"
	patch := approval.Patch{CallID: "c", Cwd: "/work", Changes: map[string]protocol.FileChange{
		"/work/new": {Add: &protocol.FileContent{Content: "x\n"}}, "/work/old": {Delete: &protocol.FileContent{Content: "y\n"}},
		"/work/from": {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n-a\n+b\n", MovePath: &to}},
	}}
	const long = 100 << 10
	for _, tt := range []struct {
		name, answer, turn string
		subject            approval.Subject
		want               string // after the time and the id
	}{
		{"a command", servertest.Accept, "turn", approval.Command{CallID: "c", Command: []string{"git", "push"}, Cwd: "/work"},
			`"threadId":"t","turnId":"turn","callId":"c","principal":"ann","kind":"command","command":["git","push"],"cwd":"/work","decision":"approved","by":"client","detail":"approved by the client"}`},
		{"declined", `{"action":"decline","content":{"feedback":"no\n"}}`, "", approval.Command{CallID: "c", Command: []string{"git"}, Cwd: "/work"},
			`"threadId":"t","turnId":"1","callId":"c","principal":"ann","kind":"command","command":["git"],"cwd":"/work","decision":"denied","by":"client","reason":"declined","detail":"declined by the client","feedback":"no"}`},
		{"a patch", servertest.Accept, "turn", patch,
			`"threadId":"t","turnId":"turn","callId":"c","principal":"ann","kind":"patch","cwd":"/work","changes":[{"path":"/work/from","kind":"update","moveTo":"/work/to","diff":"@@ -1 +1 @@\n-a\n+b\n"},` +
				`{"path":"/work/new","kind":"add","diff":"+x"},{"path":"/work/old","kind":"delete","diff":"-y"}],"decision":"approved","by":"client","detail":"approved by the client"}`},
		{"access", servertest.Cancel, "", accessed,
			`"threadId":"t","turnId":"1","principal":"ann","kind":"access","access":{"folder":"/work","mode":"danger-full-access","policy":"never"},"client":"Cursor","decision":"abort","by":"client","reason":"cancelled","detail":"cancelled by the client"}`},
		{"a question of others", servertest.Accept, "", approval.Other{Ask: &elicit.Question{Message: "Run it?", Meta: map[string]any{"path": "/etc"}}},
			`"threadId":"t","turnId":"1","principal":"ann","kind":"other","question":{"type":"approval_request","message":"Run it?","_meta":{"path":"/etc"}},"decision":"approved","by":"client","detail":"approved by the client"}`},
	} {
		var lines servertest.Journal
		b := approve.New(&approve.Options{Record: record.To(&lines)}, nil)
		r := request()
		r.Subject, r.Turn, r.TurnID, r.Thread = tt.subject, "1", tt.turn, approval.Thread{ID: "t", Principal: "ann"}
		decide(t, b, tt.answer, r)
		head := regexp.MustCompile(`^{"event":"decided","time":"2[^"]+Z","decisionId":"[A-Z0-9]{12}-1",`)
		got := head.ReplaceAllString(regexp.MustCompile(`,"waitedMs":\d+`).ReplaceAllString(lines.String(), ""), "")
		if diff := cmp.Diff(tt.want+"\n", got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for answer, whole := range map[string]bool{servertest.Accept: true, servertest.Decline: false} {
		var lines servertest.Journal
		b := approve.New(&approve.Options{Record: record.To(&lines)}, nil)
		r := request()
		r.Subject = approval.Command{Command: []string{strings.Repeat("x", long)}}
		decide(t, b, answer, r)
		if got := len(lines.String()); (got > long) != whole || got < 64<<10 {
			t.Errorf("%s: the line has %d bytes", answer, got)
		}
	}
}

// shown returns the lines of a record in short, without their times. Ids are numbers.
func shown(t *testing.T, lines string) string {
	t.Helper()
	var b strings.Builder
	for text := range strings.Lines(lines) {
		l := must.Get(record.Parse([]byte(text)))(t)
		fmt.Fprintf(&b, "%s%s", l.Event, l.DecisionID[strings.LastIndexByte(l.DecisionID, '-')+1:])
		if l.Exit != nil {
			fmt.Fprintf(&b, " exit %d", *l.Exit)
		}
		fmt.Fprintf(&b, " %s %s", l.Call, l.Kind)
		for _, c := range l.Changes {
			b.WriteString(" " + c.Kind + c.Path + c.Diff)
		}
		fmt.Fprintf(&b, " %s%s %s%s", l.Command, l.Tool, l.Decision, l.Words)
		if l.By == string(approval.ByPolicy) {
			b.WriteString(": " + l.Detail)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// worker does with a turn what its thread does.
type worker struct {
	board *approve.Board
	turn  *turn.Turn
}

func (w *worker) decide(t *testing.T, answer string, r *approval.Request) approval.Decision {
	t.Helper()
	d := decide(t, w.board, answer, r)
	w.turn.Decided(r, d)
	return d
}

func (w *worker) add(m protocol.EventMsg) {
	if line := w.turn.Add("turn", transcript.New(""), m).Line; line != nil {
		w.board.Note(approval.Thread{ID: "t"}, "turn", *line)
	}
}

func (w *worker) end() {
	for _, line := range w.turn.Unended() {
		w.board.Note(approval.Thread{ID: "t"}, "turn", line)
	}
}

// TestCalls records the beginnings and ends of calls. Each names the decision that allowed it, and a decision
// allows one call.
func TestCalls(t *testing.T) {
	begins, ends := protocol.ExecCommandBegin{CallID: "c", Command: []string{"ls"}}, protocol.ExecCommandEnd{CallID: "c", ExitCode: 3}
	patch := map[string]protocol.FileChange{"/b": {Delete: &protocol.FileContent{Content: "secret"}}, "/a": {Add: &protocol.FileContent{Content: "secret"}}}
	call := protocol.MCPInvocation{Server: "s", Tool: "t", Arguments: []byte(`{"secret":1}`)}
	failed := "it\nfailed"
	for _, tt := range []struct {
		name   string
		asked  []string // the answers to questions about the call c
		events []protocol.EventMsg
		want   string
	}{
		{"asked", []string{servertest.Accept}, []protocol.EventMsg{begins, ends}, "decided1 c command [git init] approved\nbegins1 c command [ls] \nends1 exit 3 c  [] \n"},
		{"not asked", nil, []protocol.EventMsg{begins, ends}, "begins c command [ls] \nends exit 3 c  [] \n"},
		{"an approval is for one call", []string{servertest.Accept}, []protocol.EventMsg{begins, ends, begins, ends},
			"decided1 c command [git init] approved\nbegins1 c command [ls] \nends1 exit 3 c  [] \nbegins c command [ls] \nends exit 3 c  [] \n"},
		{"begun twice", []string{servertest.Accept}, []protocol.EventMsg{begins, begins, ends},
			"decided1 c command [git init] approved\nbegins1 c command [ls] \nbegins c command [ls] \nends exit 3 c  [] \n"},
		{"denied after an approval", []string{servertest.Accept, servertest.Decline}, []protocol.EventMsg{begins, ends},
			"decided1 c command [git init] approved\ndecided2 c command [git init] denied\nbegins c command [ls] \nends exit 3 c  [] \n"},
		{"no end", nil, []protocol.EventMsg{begins, protocol.ExecCommandBegin{CallID: "b"}},
			"begins c command [ls] \nbegins b command [] \nends b  [] the turn ended before the end was reported\nends c  [] the turn ended before the end was reported\n"},
		{"a patch", nil, []protocol.EventMsg{protocol.PatchApplyBegin{CallID: "c", Changes: patch}, protocol.PatchApplyEnd{CallID: "c", Success: true}},
			"begins c patch add/a delete/b [] \nends exit 0 c  [] \n"},
		{"a patch that fails", nil, []protocol.EventMsg{protocol.PatchApplyBegin{CallID: "c"}, protocol.PatchApplyEnd{CallID: "c", Stderr: "no\nway"}},
			"begins c patch [] \nends exit 1 c  [] no way\n"},
		{"a tool", nil, []protocol.EventMsg{protocol.MCPToolCallBegin{CallID: "c", Invocation: call}, protocol.MCPToolCallEnd{CallID: "c", Result: protocol.MCPToolCallResult{Err: &failed}}},
			"begins c tool []s/t \nends exit 1 c  [] it failed\n"},
		{"refused", nil, []protocol.EventMsg{
			protocol.BackgroundEvent{Message: "hello"},
			protocol.BackgroundEvent{Refused: &protocol.Refused{CallID: "c", Command: []string{"rm"}, Reason: "never"}},
			protocol.BackgroundEvent{Refused: &protocol.Refused{Changes: patch, Reason: "never"}},
			protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "x", Reason: "never"}},
		}, "decided1 c command [rm] denied: never\ndecided2  patch add/a delete/b [] denied: never\ndecided3  tool []x denied: never\n"},
		{"nothing", nil, []protocol.EventMsg{protocol.TaskStarted{}, protocol.AgentMessage{Message: "hello"}, protocol.TaskComplete{}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var lines strings.Builder
			b := approve.New(&approve.Options{Record: record.To(&lines)}, nil)
			works := &worker{board: b, turn: turn.New(changes.Options{})}
			for _, answer := range tt.asked {
				r := request()
				r.Subject = approval.Command{CallID: "c", Command: []string{"git", "init"}}
				works.decide(t, answer, r)
			}
			for _, m := range tt.events {
				works.add(m)
			}
			works.end()
			works.end()
			if diff := cmp.Diff(tt.want, shown(t, lines.String())); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(lines.String(), "secret") {
				t.Error("the record has the arguments of a tool, or the content of a file that nobody was asked about")
			}
		})
	}
}

// unsteady is a writer that fails at some writes.
type unsteady struct {
	strings.Builder
	fails map[int]bool
	n     int
}

func (u *unsteady) Write(b []byte) (int, error) {
	if u.n++; u.fails[u.n] {
		return 0, errors.New("no room")
	}
	return u.Builder.Write(b)
}

// TestRecordFaults fails each write once. An approval that was not written counts for nothing, and the rest goes on.
func TestRecordFaults(t *testing.T) {
	for _, tt := range []struct {
		fails   int
		decided elicit.Decision
		want    string
	}{
		{0, elicit.Approved, "decided1 c command [git] approved\nbegins1 c command [] \nends1 exit 0 c  [] \n"},
		{1, elicit.Denied, "begins c command [] \nends exit 0 c  [] \n"},
		{2, elicit.Approved, "decided1 c command [git] approved\nends1 exit 0 c  [] \n"},
		{3, elicit.Approved, "decided1 c command [git] approved\nbegins1 c command [] \n"},
	} {
		u := &unsteady{fails: map[int]bool{tt.fails: true}}
		var log servertest.Journal
		b := approve.New(&approve.Options{Record: record.To(u), Logger: log.Logger()}, nil)
		r := request()
		r.Subject = approval.Command{CallID: "c", Command: []string{"git"}}
		works := &worker{board: b, turn: turn.New(changes.Options{})}
		d := works.decide(t, servertest.Accept, r)
		works.add(protocol.ExecCommandBegin{CallID: "c"})
		works.add(protocol.ExecCommandEnd{CallID: "c"})
		if diff := cmp.Diff(tt.want, shown(t, u.String())); diff != "" || d.Decision != tt.decided {
			t.Errorf("write %d fails: %s\n%s", tt.fails, d.Decision, diff)
		}
		if noted := strings.Contains(log.String(), "not recorded"); noted != (tt.fails > 0) {
			t.Errorf("write %d fails: logged %s", tt.fails, &log)
		}
	}
}

const always = `{"action":"accept","content":{"decision":"approved_always"}}`

// lasting asks about a command for which a rule can be offered, in a folder.
func lasting(folder string) *approval.Request {
	r := request()
	exec := r.Subject.(approval.Command)
	exec.Command, exec.Cwd, exec.Confinable, exec.LeavesSandbox = []string{"make"}, folder, true, true
	r.Subject = exec
	return r
}

// offer asks a question with what the board offers for it, as a host does.
func offer(ctx context.Context, b *approve.Board, r *approval.Request) approval.Decision {
	r.Question.Always = b.Offer(r)
	return b.Decide(ctx, r, false)
}

// TestAlways keeps a rule if a person accepts one that the question showed, and for no other
// reason. It holds for the principal of the question alone.
func TestAlways(t *testing.T) {
	says := func(answer string) func(*approve.Board, *elicit.Options) {
		return func(b *approve.Board, o *elicit.Options) { b.Attach(newClient(servertest.Say(answer), o)) }
	}
	returns := func(out elicit.Outcome) func(*approve.Board, *elicit.Options) {
		return func(b *approve.Board, _ *elicit.Options) { b.Attach(returning(out)) }
	}
	for _, tt := range []struct {
		name   string
		form   elicit.Form
		change func(*approve.Options, *approval.Request)
		place  func(*approve.Board, *elicit.Options)
		want   elicit.Decision
		kept   bool
	}{
		{"a client", elicit.FormDecision, nil, says(always), elicit.ApprovedAlways, true},
		{"a desk", "", nil, returns(elicit.Outcome{Decision: elicit.ApprovedAlways}), elicit.ApprovedAlways, true},
		{"a client approves once", elicit.FormDecision, nil, says(servertest.Accept), elicit.Approved, false},
		{"a client whose form does not show it", elicit.FormEmpty, nil, says(always), elicit.Denied, false},
		{"a flat answer", elicit.FormDecision, nil, says(`{"decision":"approved_always"}`), elicit.Denied, false},
		{"a rule of the program", elicit.FormDecision, func(o *approve.Options, _ *approval.Request) {
			o.Rules.Decide = func(context.Context, *approval.Request) (elicit.Outcome, bool) {
				return elicit.Outcome{Decision: elicit.ApprovedAlways}, true
			}
		}, says(always), elicit.Denied, false},
		{"no store", elicit.FormDecision, func(o *approve.Options, _ *approval.Request) { o.Kept = nil }, says(always), elicit.Denied, false},
		{"nothing to offer", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) {
			exec := r.Subject.(approval.Command)
			exec.Confinable = false
			r.Subject = exec
		}, returns(elicit.Outcome{Decision: elicit.ApprovedAlways}), elicit.Denied, false},
		{"not all is shown", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) { r.Question.Partial = true }, says(always), elicit.Denied, false},
		{"denied without asking", elicit.FormDecision, func(_ *approve.Options, r *approval.Request) { r.Deny = "no" }, says(always), elicit.Denied, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, folder := t.TempDir(), t.TempDir()
			var lines servertest.Journal
			o := &approve.Options{Questions: elicit.Options{Schema: tt.form}, Kept: rulefile.New(home, nil), Record: record.To(&lines)}
			store, r := o.Kept, lasting(folder)
			r.Thread.Principal = "ann"
			if tt.change != nil {
				tt.change(o, r)
			}
			b := approve.New(o, nil)
			tt.place(b, &o.Questions)
			d := offer(t.Context(), b, r)
			if d.Decision != tt.want || tt.kept && (!d.Confined || d.RuleWords == "") {
				t.Errorf("%+v", d)
			}
			kept, err := store.List()
			if err != nil || (len(kept) == 1) != tt.kept {
				t.Fatalf("kept %+v, %v", kept, err)
			}
			if d := b.Decide(t.Context(), r, false); d.Decision == elicit.ApprovedAlways && !tt.kept {
				t.Errorf("the offer counts again: %+v", d)
			}
			if !tt.kept {
				return
			}
			if kept[0].By != string(d.By) || !strings.Contains(lines.String(), `"decision":"approved_always"`) ||
				!strings.Contains(lines.String(), `"rule":1,"ruleWords":"`) {
				t.Errorf("kept %+v, recorded %s", kept, &lines)
			}
			for principal, hers := range map[string]bool{"ann": true, "bob": false, "": false} {
				r := lasting(folder)
				r.Thread.Principal = principal
				again := offer(t.Context(), approve.New(o, nil), r)
				if ruled := again.Decision == elicit.Approved && again.By == approval.ByRule && again.Confined; ruled != hers {
					t.Errorf("asked again for %q: %+v", principal, again)
				}
			}
		})
	}
}

// TestAlwaysThatCannotBeKept accepts a rule that cannot be written, or whose folder has gone since the question. The approval
// counts, once and in the sandbox: nothing else is known to have changed. A folder in its place is another one.
func TestAlwaysThatCannotBeKept(t *testing.T) {
	for _, tt := range []struct {
		name   string
		home   []string // laid in the home
		change func(folder, other string) error
		want   elicit.Decision
		told   bool
	}{
		{"gone", nil, func(folder, _ string) error { return os.Remove(folder) }, elicit.Approved, true},
		{"replaced", nil, func(folder, other string) error {
			return errors.Join(os.Remove(folder), os.Symlink(other, folder))
		}, elicit.Denied, false},
		{"no store", []string{"codex-mcp=a file, not a folder"}, func(string, string) error { return nil }, elicit.Approved, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "replaced" {
				testenv.NeedsLinks(t)
			}
			home, folder, other := t.TempDir(), filepath.Join(t.TempDir(), "work"), t.TempDir()
			must.OK(t, os.Mkdir(folder, 0o700))
			boxtest.Lay(t, home, tt.home...)
			o := &approve.Options{Questions: elicit.Options{Schema: elicit.FormDecision}, Kept: rulefile.New(home, nil)}
			b := approve.New(o, nil)
			b.Attach(newClient(func(context.Context) (string, error) { return always, tt.change(folder, other) }, &o.Questions))
			d := offer(t.Context(), b, lasting(folder))
			if told := strings.Contains(strings.Join(d.Remarks, " "), "approved once"); d.Decision != tt.want || d.Confined != d.Decision.Approves() || d.RuleWords != "" || told != tt.told {
				t.Errorf("%+v", d)
			}
			if kept, err := o.Kept.List(); len(kept) > 0 || err != nil && tt.home == nil {
				t.Errorf("kept %v, %v", kept, err)
			}
		})
	}
}

// TestAlwaysAgainstAnother has the stricter of two simultaneous answers decide, without a rule.
func TestAlwaysAgainstAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := rulefile.New(t.TempDir(), nil)
		b := approve.New(&approve.Options{Kept: store}, nil)
		for _, decision := range []elicit.Decision{elicit.ApprovedAlways, elicit.Approved} {
			b.Attach(&approve.Place{By: "desk", Ask: func(ctx context.Context, _ *approval.Request) (elicit.Outcome, error) {
				time.Sleep(time.Second)
				return elicit.Outcome{Decision: decision}, nil
			}})
		}
		d := offer(t.Context(), b, lasting(t.TempDir()))
		if kept, err := store.List(); d.Decision != elicit.Approved || d.Confined || len(kept) > 0 || err != nil {
			t.Errorf("%+v; kept %+v, %v", d, kept, err)
		}
	})
}
