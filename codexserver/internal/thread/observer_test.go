package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// notes are what observers receive, in order.
type notes struct{ lines []string }

func (n *notes) add(who, format string, args ...any) {
	n.lines = append(n.lines, who+" "+fmt.Sprintf(format, args...))
}

// noter is an observer with a name.
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

func (n noter) Asked(*approval.Request) { n.add(n.name, "asked") }

func (n noter) Decided(_ *approval.Request, d approval.Decision) {
	n.add(n.name, "decided %s", d.Decision)
}

func (n noter) End(err error) { n.add(n.name, "end %v", err) }

// Turn implements [thread.CallObserver].
func (n noter) Turn(id string, _ protocol.TokenUsage) thread.TurnObserver { return n }

// deskNoter is a desk that cannot show a question.
type deskNoter struct{ noter }

func (d deskNoter) Event(t approval.Thread, m protocol.EventMsg) {
	d.add(d.name, "%s of %q", m.EventType(), t.ID)
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

// TestObservers checks what the observers of a turn, a listener, an observer for metrics and a
// desk receive, and in which order. The question is the second of two events.
func TestObservers(t *testing.T) {
	n := &notes{}
	noted := func(name string) noter { return noter{n, name} }
	e := engine.TurnFunc(func(ctx context.Context, h engine.Host, _ []protocol.InputItem) error {
		h.Emit(protocol.AgentMessage{Message: "m"})
		h.ApproveExec(ctx, protocol.ExecApprovalRequest{Command: []string{"ls"}})
		return nil
	})
	desk := deskNoter{noted("desk")}
	share := thread.NewTable(e, &approve.Options{Desk: desk}).Share("")
	a := thread.Attend{Observers: []thread.Observer{noted("first"), noted("second")}, Observer: noted("metrics"), Ask: &approve.Place{Ask: deniedPlace}, Leaves: true}
	th, err := share.Start(t.Context(), protocol.Config{}, a)
	if err != nil {
		t.Fatal(err)
	}
	th.Listen("l", func(e protocol.Event) { n.add("listener", "%s as %q", e.Msg.EventType(), e.ID) })
	n.lines = nil
	if err := th.Begin(a, protocol.TurnInput{Items: protocol.TextInput("p")}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	th.Warn("w", "after the turn")
	if err := share.Close(); err != nil {
		t.Fatal(err)
	}
	id := th.ID()
	event := func(kind, as string, notice bool) []string {
		line := fmt.Sprintf("%s of %q as %q, notice %t", kind, id, as, notice)
		return []string{"first " + line, "second " + line, fmt.Sprintf("listener %s as %q", kind, as), "metrics " + line, fmt.Sprintf("desk %s of %q", kind, id)}
	}
	want := []string{fmt.Sprintf("metrics user_message of %q as \"\", notice false", id), fmt.Sprintf("desk user_message of %q", id)}
	for _, kind := range []string{"task_started", "agent_message"} {
		want = append(want, "first ready "+kind, "second ready "+kind, "metrics ready "+kind)
		want = append(want, event(kind, "0", false)...)
	}
	want = append(want, event("exec_approval_request", "0", false)...)
	want = append(want, "first asked", "second asked", "metrics asked")
	want = append(want, event("background_event", "0", true)...) // the desk's invitation
	want = append(want, "desk decided denied", "first decided denied", "second decided denied", "metrics decided denied")
	want = append(want, event("background_event", "0", false)...) // why no place was asked
	want = append(want, "first ready task_complete", "second ready task_complete", "metrics ready task_complete")
	want = append(want, event("task_complete", "0", false)...)
	want = append(want, "metrics end <nil>")
	want = append(want, `listener background_event as "w"`, fmt.Sprintf("desk background_event of %q", id), fmt.Sprintf("desk shutdown_complete of %q", id))
	if diff := cmp.Diff(want, n.lines); diff != "" {
		t.Errorf("received (-want +got):\n%s\n%s", diff, strings.Join(n.lines, "\n"))
	}
}
