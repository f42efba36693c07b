package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPrincipals tries each way to an open thread of ann's, from her other connection and from
// another user's, who does not even cause a look at its rollout. It stays open until her last connection closes.
func TestPrincipals(t *testing.T) {
	m := &memory{}
	table := newTable(m)
	first, second, bob := table.Share("ann"), table.Share("ann"), table.Share("bob")
	th := start(t, first)
	id := th.ID()
	if bob.Hold(id) != nil || bob.Find(id) != nil || second.Find(id) != nil || first.Find(id) != th {
		t.Error("a thread is found by who does not hold it")
	}
	if first.Elsewhere(id) || !second.Elsewhere(id) || !bob.Elsewhere(id) || second.Elsewhere("5") {
		t.Error("elsewhere")
	}
	if _, err := bob.Revive(t.Context(), admit.Trusted(), id, protocol.Config{}, thread.Attend{}); err == nil || !strings.Contains(err.Error(), "no conversation") || m.resume != 0 {
		t.Errorf("bob revives it: %v, resumed %d times", err, m.resume)
	}
	if err := bob.End(t.Context(), id); err != nil || m.ends() != "" {
		t.Errorf("bob ends it: %v, closed %q", err, m.ends())
	}
	if got, err := second.Revive(t.Context(), admit.Trusted(), id, protocol.Config{}, thread.Attend{}); got != th || err != nil || second.Find(id) != th || second.Elsewhere(id) {
		t.Errorf("ann's other connection: %v, %v", got, err)
	}
	other := start(t, bob)
	if err := errors.Join(bob.Close(), first.Close()); err != nil || m.ends() != other.ID() || bob.Hold(id) != nil || first.Hold(id) != nil {
		t.Errorf("%v, closed %q", err, m.ends())
	}
	must.Check(t, say(t, th, "still here"))
	if err := second.Close(); err != nil || m.ends() != other.ID()+" "+id {
		t.Errorf("%v, closed %q", err, m.ends())
	}
	if _, err := second.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{}); !errors.Is(err, thread.ErrShareClosed) || m.ends() != other.ID()+" "+id+" 3" {
		t.Errorf("a closed share starts a thread: %v, closed %q", err, m.ends())
	}
	if table.Share("ann").Hold(id) != nil {
		t.Error("a closed thread is held")
	}
}

var errFault = errors.New("a fault")

// TestFaultsOfTheEngine passes the errors of the engine on.
func TestFaultsOfTheEngine(t *testing.T) {
	m := &memory{fault: errFault}
	s := newTable(m).Share("")
	for name, f := range map[string]func() (*thread.Thread, error){
		"start": func() (*thread.Thread, error) {
			return s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{})
		},
		"revive": func() (*thread.Thread, error) {
			return s.Revive(t.Context(), admit.Trusted(), "7", protocol.Config{}, thread.Attend{})
		},
	} {
		if th, err := f(); th != nil || !errors.Is(err, errFault) {
			t.Errorf("%s: %v, %v", name, th, err)
		}
	}
	m.fault, m.closes = nil, errFault
	th := start(t, s)
	if err := s.End(t.Context(), th.ID()); !errors.Is(err, errFault) {
		t.Errorf("the end of a thread: %v", err)
	}
	start(t, s)
	if err := s.Close(); !errors.Is(err, errFault) {
		t.Errorf("the end of a share: %v", err)
	}

	s = thread.NewTable(engine.TurnFunc(nil), &approve.Options{}).Share("")
	if _, err := s.Revive(t.Context(), admit.Trusted(), "7", protocol.Config{}, thread.Attend{}); err == nil || !strings.Contains(err.Error(), "in this session") {
		t.Errorf("an engine without rollouts revives: %v", err)
	}
}

func TestCanonicalID(t *testing.T) {
	const id = "01234567-89ab-7def-8123-456789abcdef"
	for text, want := range map[string]string{
		id: id, strings.ToUpper(id): id, "{" + id + "}": id, "urn:uuid:" + id: id, strings.ReplaceAll(id, "-", ""): id,
		"7": "7", "": "", id + "0": id + "0", "../" + id: "../" + id,
	} {
		must.Equal(t, text, want, thread.CanonicalID(text))
	}
}

// TestStopBeforeTheTurn interrupts a turn that waits for its place, and a thread without a turn.
func TestStopBeforeTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := newTable(m).Share("")
		th := start(t, s)
		if th.Stop(errFault) != nil {
			t.Error("a turn is stopped, but there is none")
		}
		queued := th.Begin(t.Context(), alone(), protocol.TurnInput{Items: protocol.TextInput("wait")})
		ended := th.Stop(errFault)
		var abort *engine.AbortError
		err := queued.Wait()
		if !errors.As(err, &abort) || !errors.Is(err, errFault) || abort.Reason != protocol.AbortInterrupted {
			t.Errorf("the queued turn ended with %v", err)
		}
		<-ended
		if th.Stop(errFault) != nil {
			t.Error("the turn has not ended")
		}

		// An interrupt waits for the end of the turn, but not for ever.
		release := make(chan struct{})
		acted := make(chan error)
		m.act = func(context.Context, engine.Host) error { <-release; return nil }
		go func() { acted <- say(t, th, "act") }()
		synctest.Wait()
		late, cancel := context.WithTimeoutCause(t.Context(), time.Second, errFault)
		defer cancel()
		if ran, err := th.Interrupt(late); !ran || !errors.Is(err, errFault) {
			t.Errorf("interrupt: %t, %v", ran, err)
		}
		if err := th.Begin(late, alone(), protocol.TurnInput{}).Wait(); !errors.As(err, &abort) || !errors.Is(err, errFault) || abort.Reason != protocol.AbortInterrupted {
			t.Errorf("a turn whose context ends while it waits: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		queued = th.Begin(gone, alone(), protocol.TurnInput{})
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		synctest.Wait()
		leave()
		if err := queued.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("a turn that leaves the queue: %v", err)
		}
		close(release)
		must.Check(t, <-acted)
		must.Check(t, <-closed)
		if err := say(t, th, "too late"); !errors.As(err, &abort) || abort.Reason != protocol.AbortInterrupted || th.Stop(errFault) != nil {
			t.Errorf("a turn of a closed thread: %v", err)
		}
	})
}

// TestBacklog keeps the events of a thread for the first listener if it is to, the last ones if they are many.
func TestBacklog(t *testing.T) {
	for _, tt := range []struct {
		keeps       bool
		emit, first int // how many messages, and the number of the first that is kept
		kept        int
	}{{true, 10, 1, 10}, {false, 10, 0, 0}, {true, 4096, 1, 4096}, {true, 4097, 2049, 2049}} {
		s := newTable(&memory{act: func(_ context.Context, h engine.Host) error {
			for i := range tt.emit {
				h.Emit(protocol.AgentMessage{Message: fmt.Sprint(i + 1)})
			}
			return nil
		}}).Share("")
		th := must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{Keeps: tt.keeps}))(t)
		must.OK(t, th.Begin(t.Context(), alone(), protocol.TurnInput{}).Wait())
		var got [2][]string
		for i := range got {
			th.Listen(func(e protocol.Event) {
				if m, ok := e.Msg.(protocol.AgentMessage); ok {
					got[i] = append(got[i], m.Message)
				}
			})
		}
		if len(got[0]) != tt.kept || len(got[1]) != 0 || tt.kept > 0 && (got[0][0] != fmt.Sprint(tt.first) || got[0][tt.kept-1] != fmt.Sprint(tt.emit)) {
			t.Errorf("%+v: %d events for the first listener, %d for the second", tt, len(got[0]), len(got[1]))
		}
	}
}

// yes is a place that approves everything.
func yes(context.Context, *approval.Request) (elicit.Outcome, error) {
	return elicit.Outcome{Decision: elicit.Approved}, nil
}

// TestKindsOfTurns runs each kind of turn: what the engine is asked for, that it begins, that a
// review asks for nothing, and that the turn after it may.
func TestKindsOfTurns(t *testing.T) {
	ask := engine.TurnFunc(func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
		out := h.Ask(ctx, approval.Command{Command: []string{"make"}, Cwd: "/w"})
		_, err := h.Elicit(ctx, &approval.Foreign{})
		h.Emit(protocol.AgentMessage{Message: fmt.Sprint(protocol.TextOf(in), ": ", out.Decision, ", ", err)})
		if protocol.TextOf(in) == "fail" {
			return errFault
		}
		return nil
	})
	s := thread.NewTable(ask, &approve.Options{}).Share("")
	th := start(t, s)
	for _, tt := range []struct {
		name, review string
		in           protocol.TurnInput
		want, err    string
	}{
		{"a turn", "", protocol.TurnInput{Items: protocol.TextInput("hello")}, "hello: approved, <nil>", ""},
		{"a review", "Review base main", protocol.TurnInput{Items: protocol.TextInput("a prompt")}, "a prompt: denied, " + elicit.ErrUnsupported.Error(), ""},
		{"the rest", "", protocol.TurnInput{Items: protocol.TextInput("the rest"), Continue: func(string) {}}, "the rest: approved, <nil>", ""},
		{"a turn that fails", "", protocol.TurnInput{Items: protocol.TextInput("fail")}, "fail: approved, <nil>", errFault.Error()},
	} {
		a := thread.Attend{
			Ask: &approve.Place{Ask: yes}, Turn: turn.New(changes.Options{}), Review: tt.review,
			Elicit: func(context.Context, *approval.Foreign) (json.RawMessage, error) { return nil, nil },
		}
		a.Turn.Order.Key = "k"
		err := th.Begin(t.Context(), a, tt.in).Wait()
		said := a.Turn.Result().Said.Last
		if kept := a.Turn.Resume(); kept == nil || kept.Began.IsZero() || !a.Turn.So().Status.Ended() {
			t.Errorf("%s: the turn is %s, and kept as %+v", tt.name, a.Turn.So().Status, kept)
		}
		if said != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v", tt.name, said, err)
		}
	}
	page := must.Get(th.Log().Transcript(0, 1<<20))(t)
	for _, want := range []string{
		"user:\n  hello\n", "user:\n  Review base main\n", "  [the server ended during this turn", "user:\n  fail\n", "the turn did not complete:\n  a fault\n",
	} {
		if !strings.Contains(page.Text, want) {
			t.Errorf("the transcript lacks %q:\n%s", want, page.Text)
		}
	}
	must.Check(t, s.Close())
}

// TestRequests checks that each member of an engine's request reaches the question, and which
// questions may offer a lasting rule.
func TestRequests(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	sh := []string{"bash", "-lc", "make"}
	moved := map[string]protocol.FileChange{"/w/a": {Add: &protocol.FileContent{Content: "x"}}}
	for _, tt := range []struct {
		subject approval.Subject
		want    string // in the message
		once    bool
	}{
		{approval.Command{Command: sh, Cwd: "/w", Reason: "why"}, "Allow Codex to run `make` in `/w`?\nReason given by the model: \"why\"", false},
		{approval.Command{Command: sh, Cwd: "/w", Reason: "why", FromEngine: true}, "in `/w`?\nwhy", false},
		{approval.Command{Command: sh, Cwd: "/w", LeavesSandbox: true}, "runs outside the sandbox, once", false},
		{approval.Command{Command: sh, Cwd: "/w", Human: true, Notes: []string{"One."}}, "One.\nOnly a person may approve this, each time.", true},
		{approval.Command{Command: sh, Cwd: "/w", Notes: []string{"One."}, Once: true}, "`/w`?\nOne.", true},
		{approval.Patch{Cwd: "/w", Changes: moved}, "- add `/w/a` (+1 -0)", false},
		{approval.Patch{Cwd: "/w", Changes: moved, Once: true}, "- add `/w/a` (+1 -0)", true},
	} {
		var got *elicit.Question
		rules := approval.Rules{Decide: func(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
			got = r.Question
			return elicit.Outcome{Decision: elicit.Denied}, true
		}}
		m := &memory{act: func(ctx context.Context, h engine.Host) error {
			h.Ask(ctx, tt.subject)
			return nil
		}}
		if err := say(t, start(t, thread.NewTable(m, &approve.Options{Rules: rules}).Share("")), "ask"); err != nil || got == nil {
			t.Fatalf("%+v: %v", tt.subject, err)
		}
		must.Equal(t, fmt.Sprintf("%+v: once", tt.subject), tt.once, got.Once)
		if !strings.Contains(got.Message, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.subject, got.Message, tt.want)
		}
	}
}

// notes are what observers receive, in order.
type notes struct {
	lines []string
	waits atomic.Int32 // comes from another goroutine
}

func (n *notes) add(who, format string, args ...any) {
	n.lines = append(n.lines, who+" "+fmt.Sprintf(format, args...))
}

type noter struct {
	*notes
	name string
}

func (n noter) Ready(context.Context) { n.add(n.name, "ready") }

func (n noter) Event(e thread.Event) {
	switch {
	case e.Msg != nil:
		n.add(n.name, "%s of %q as %q, notice %q", e.Msg.EventType(), e.Thread.ID, e.ID, e.Notice)
	case e.Turn != nil:
		n.waits.Add(1)
	default:
		n.add(n.name, "is told %q", e.Notice)
	}
}

// metrics is a [thread.TurnObserver].
type metrics struct{ *notes }

func (n metrics) Event(m protocol.EventMsg) { n.add("metrics", "%s", m.EventType()) }

func (n metrics) Asked(*approval.Request) { n.add("metrics", "asked") }

func (n metrics) Decided(_ *approval.Request, d approval.Decision) {
	n.add("metrics", "decided %s", d.Decision)
}

func (n metrics) End(err error) { n.add("metrics", "end %v", err) }

// deskNoter is a desk that cannot show a question.
type deskNoter struct{ *notes }

func (d deskNoter) Event(t approval.Thread, m protocol.EventMsg) {
	_, _ = t.Now(), t.Log() // each event is that of a lock that these must not wait for
	d.add("desk", "%s of %q", m.EventType(), t.ID)
}

func (d deskNoter) Decided(_ *approval.Request, m approval.Decision) {
	d.add("desk", "decided %s", m.Decision)
}

func (deskNoter) Ask(context.Context, *approval.Request) (json.RawMessage, error) {
	return nil, context.DeadlineExceeded
}

func (deskNoter) Name() approval.Decider { return "desk" }

func (deskNoter) Invite() string { return "come" }

// deniedPlace denies every question, because it cannot ask.
func deniedPlace(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
	return r.Question.ReadError(elicit.ErrUnsupported, nil), nil
}

// TestObservers checks what the client of a turn, a listener, an observer for metrics and a
// desk receive, and in which order. The question is the second of two events.
func TestObservers(t *testing.T) {
	n := &notes{}
	e := engine.TurnFunc(func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		h.Emit(protocol.AgentMessage{Message: "m"})
		h.Ask(ctx, approval.Command{Command: []string{"ls"}})
		return nil
	})
	desk := deskNoter{n}
	table := thread.NewTable(e, &approve.Options{Desk: desk})
	table.Observe = func(string) thread.TurnObserver { return metrics{n} }
	share := table.Share("")
	a := thread.Attend{Turn: alone().Turn, Client: noter{n, "client"}, Ask: &approve.Place{Ask: deniedPlace}}
	th := must.Get(share.Start(t.Context(), admit.Trusted(), protocol.Config{}, a))(t)
	th.Listen(func(e protocol.Event) { n.add("listener", "%s as %q", e.Msg.EventType(), e.ID) })
	n.lines = nil
	must.OK(t, th.Begin(t.Context(), a, protocol.TurnInput{Items: protocol.TextInput("p")}).Wait())
	th.Warn("w", "after the turn")
	must.OK(t, share.Close())
	id := th.ID()
	event := func(kind, as, notice string) []string {
		line := fmt.Sprintf("%s of %q as %q, notice %q", kind, id, as, notice)
		return []string{"client " + line, fmt.Sprintf("listener %s as %q", kind, as), "metrics " + kind, fmt.Sprintf("desk %s of %q", kind, id)}
	}
	want := []string{"metrics user_message", fmt.Sprintf("desk user_message of %q", id)}
	for _, kind := range []string{"task_started", "agent_message"} {
		want = append(want, "client ready")
		want = append(want, event(kind, "0", "")...)
	}
	want = append(want, event("exec_approval_request", "0", "")...)
	want = append(want, "metrics asked")
	want = append(want, event("background_event", "0", "come")...) // the desk's invitation
	want = append(want, "desk decided denied", `client is told "not asked for approval: the client has no elicitation"`, "metrics decided denied")
	want = append(want, event("background_event", "0", "")...) // why no place was asked
	want = append(want, "client ready")
	want = append(want, event("task_complete", "0", "")...)
	want = append(want, "metrics end <nil>")
	want = append(want, `listener background_event as "w"`, fmt.Sprintf("desk background_event of %q", id), fmt.Sprintf("desk shutdown_complete of %q", id))
	must.Equal(t, "how often the client was told that somebody sees the question", int32(1), n.waits.Load())
	must.Equal(t, "what was received", want, n.lines)
}
