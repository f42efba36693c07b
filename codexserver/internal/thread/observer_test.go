package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// notes are what observers receive, in order.
type notes struct {
	lines []string
	waits atomic.Int32 // comes from another goroutine
}

func (n *notes) add(who, format string, args ...any) {
	n.lines = append(n.lines, who+" "+fmt.Sprintf(format, args...))
}

// noter is a client with a name.
type noter struct {
	*notes
	name string
}

func (n noter) Ready(_ context.Context, m protocol.EventMsg) {
	n.add(n.name, "ready %s", m.EventType())
}

func (n noter) Event(e thread.Event) {
	n.add(n.name, "%s of %q as %q, notice %t", e.Msg.EventType(), e.Thread.ID, e.ID, e.Notice)
}

func (n noter) Waits() { n.waits.Add(1) }

func (n noter) Decided(d approval.Decision) { n.add(n.name, "decided %s", d.Decision) }

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
		h.ApproveExec(ctx, protocol.ExecApprovalRequest{Command: []string{"ls"}})
		return nil
	})
	desk := deskNoter{n}
	share := thread.NewTable(e, &approve.Options{Desk: desk}).Share("")
	a := thread.Attend{Client: noter{n, "client"}, Observer: func(string, protocol.TokenUsage) thread.TurnObserver { return metrics{n} }, Ask: &approve.Place{Ask: deniedPlace}, Leaves: true}
	th, err := share.Start(t.Context(), protocol.Config{}, a)
	must.OK(t, err)
	th.Listen(func(e protocol.Event) { n.add("listener", "%s as %q", e.Msg.EventType(), e.ID) })
	n.lines = nil
	must.OK(t, th.Begin(a, protocol.TurnInput{Items: protocol.TextInput("p")}).Run(t.Context()))
	th.Warn("w", "after the turn")
	must.OK(t, share.Close())
	id := th.ID()
	event := func(kind, as string, notice bool) []string {
		line := fmt.Sprintf("%s of %q as %q, notice %t", kind, id, as, notice)
		return []string{"client " + line, fmt.Sprintf("listener %s as %q", kind, as), "metrics " + kind, fmt.Sprintf("desk %s of %q", kind, id)}
	}
	want := []string{"metrics user_message", fmt.Sprintf("desk user_message of %q", id)}
	for _, kind := range []string{"task_started", "agent_message"} {
		want = append(want, "client ready "+kind)
		want = append(want, event(kind, "0", false)...)
	}
	want = append(want, event("exec_approval_request", "0", false)...)
	want = append(want, "metrics asked")
	want = append(want, event("background_event", "0", true)...) // the desk's invitation
	want = append(want, "desk decided denied", "client decided denied", "metrics decided denied")
	want = append(want, event("background_event", "0", false)...) // why no place was asked
	want = append(want, "client ready task_complete")
	want = append(want, event("task_complete", "0", false)...)
	want = append(want, "metrics end <nil>")
	want = append(want, `listener background_event as "w"`, fmt.Sprintf("desk background_event of %q", id), fmt.Sprintf("desk shutdown_complete of %q", id))
	if n := n.waits.Load(); n != 1 {
		t.Errorf("the client was told %d times that somebody sees the question", n)
	}
	if diff := cmp.Diff(want, n.lines); diff != "" {
		t.Errorf("received (-want +got):\n%s\n%s", diff, strings.Join(n.lines, "\n"))
	}
}
