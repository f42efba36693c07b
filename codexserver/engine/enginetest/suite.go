package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// promise is one test of the suite.
type promise struct {
	name string
	run  func(*testing.T, *Subject)
	// needs reports whether a conversation of an engine is of a kind that makes the promise. Nil means that all do.
	needs func(engine.Engine, engine.Conversation) bool
}

func promises() []promise {
	return []promise{
		{"Start", testStart, nil}, // announces a conversation once, by its id
		{"Text", testText, nil},   // answers, turn after turn
		// asks before a command runs, and runs it when approved
		{"Approved", testApproved, nil},
		{"Denied", testDenied, nil}, // runs nothing that was denied, and continues
		// ends the turn when a question is answered with abort
		{"Abort", testAbort, nil},
		{"InterruptWhileAsking", testInterruptWhileAsking, nil},   // is interrupted while a question is open
		{"InterruptWhileRunning", testInterruptWhileRunning, nil}, // is interrupted while a command runs, and ends it
		{"Failure", testFailure, nil},                             // says why a turn failed, and stays usable
		{"SideBySide", testSideBySide, nil},                       // keeps conversations side by side apart
		// takes a message while a turn runs, which answers no open question
		{"Steered", testSteered, steers},
		// asks the model again for a message that came with its last answer
		{"SteeredLate", testSteeredLate, steers},
		// keeps a message that an interrupt overtook, and says so
		{"SteeredInterrupted", testSteeredInterrupted, steers},
		{"SteeredBetween", testSteeredBetween, steers}, // refuses a message for a turn when none is running
		{"Checked", testChecked, checks},               // runs a check as a command of the model
		// works under a schema, and then gives the answer its form
		{"Formed", testFormed, forms},
		{"Described", testDescribed, has[engine.Describer]}, // says the same of itself each time
		{"Resumed", testResumed, has[engine.Resumer]},       // opens a conversation again, with its past
		{"Listed", testListed, has[engine.Library]},         // lists a conversation after its first turn
		{"Accounts", testAccounts, has[engine.Accounts]},    // shows no token unasked, and signs out twice
		{"Searched", testSearched, has[engine.Searcher]},    // finds a file by its letters, and ends
		{"Models", testModels, has[engine.ModelLister]},     // lists models or says why not
		{"ReadOnly", testReadOnly, confines},                // reads without questions and changes
	}
}

// Run makes a subject for each test of the suite and runs it. First it makes one more, to
// see which optional interfaces and traits the engine has.
func Run(t *testing.T, make func(t *testing.T) *Subject) {
	s := make(t)
	c := start(t, s, always(elicit.Denied)).Conversation
	for _, p := range promises() {
		if p.needs == nil || p.needs(s.Engine, c) {
			t.Run(p.name, func(t *testing.T) { p.run(t, make(t)) })
		}
	}
}

func testStart(t *testing.T, s *Subject) {
	c := start(t, s, always(elicit.Denied))
	events := c.take()
	if len(events) == 0 {
		t.Fatal("Start emitted nothing")
	}
	configured, ok := events[0].(protocol.SessionConfigured)
	if !ok || configured.SessionID != c.ID() || c.ID() == "" {
		t.Errorf("Start emitted %#v first, and the id is %q", events[0], c.ID())
	}
	if n := count[protocol.SessionConfigured](events); n != 1 {
		t.Errorf("session_configured came %d times", n)
	}
}

func testText(t *testing.T, s *Subject) {
	s.Script(Step{Text: "one"}, Step{Text: "two"})
	c := start(t, s, always(elicit.Denied))
	for _, want := range []string{"one", "two"} {
		c.completes(t, "say "+want, want)
	}
}

func testApproved(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")}, Step{Text: "done"})
	c := start(t, s, always(elicit.Approved))
	events := c.completes(t, "make a file", "done")
	asked, began, ended := index[protocol.ExecApprovalRequest](events), index[protocol.ExecCommandBegin](events),
		index[protocol.ExecCommandEnd](events)
	if asked < 0 || began < asked || ended < began {
		t.Errorf("question, begin and end of the command came at %d, %d, %d in %s", asked, began, ended, types(events))
	}
	if !exists(c, "made") {
		t.Error("the approved command did not run")
	}
}

func testDenied(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")}, Step{Text: "as you like"})
	c := start(t, s, always(elicit.Denied))
	events := c.completes(t, "make a file", "as you like")
	if exists(c, "made") || index[protocol.ExecCommandBegin](events) >= 0 {
		t.Errorf("a denied command ran: %s", types(events))
	}
}

func testAbort(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")}, Step{Text: "after an abort the model must not be asked"})
	c := start(t, s, always(elicit.Abort))
	events, err := c.say(t, t.Context(), "make a file")
	aborted(t, events, err)
	if exists(c, "made") || index[protocol.AgentMessage](events) >= 0 {
		t.Errorf("the turn continued after an abort: %s", types(events))
	}
	usable(t, s, c)
}

func testInterruptWhileAsking(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")})
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	c := start(t, s, func(ctx context.Context, _ protocol.EventMsg) elicit.Outcome {
		interrupt(errStop)
		<-ctx.Done()
		return elicit.Outcome{Decision: elicit.Abort}
	})
	events, err := c.say(t, ctx, "make a file")
	aborted(t, events, err)
	if exists(c, "made") {
		t.Error("the command of an interrupted turn ran")
	}
	usable(t, s, c)
}

func testInterruptWhileRunning(t *testing.T, s *Subject) {
	s.Script(Step{Command: []string{"sh", "-c", "sleep 0.5; echo up; exec sleep 600"}})
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	c := start(t, s, always(elicit.Approved))
	c.on = func(m protocol.EventMsg) {
		if _, running := m.(protocol.ExecCommandOutputDelta); running {
			interrupt(errStop)
		}
	}
	events, err := c.say(t, ctx, "wait")
	aborted(t, events, err)
	if !errors.Is(context.Cause(ctx), errStop) {
		t.Errorf("no exec_command_output_delta in %s", types(events))
	}
	usable(t, s, c)
}

func testFailure(t *testing.T, s *Subject) {
	s.Script(Step{Fail: true})
	c := start(t, s, always(elicit.Denied))
	events, err := c.say(t, t.Context(), "fail")
	var failed *engine.TurnError
	if !errors.As(err, &failed) || failed.Message == "" {
		t.Errorf("the turn returned %v, not a *engine.TurnError", err)
	}
	if i := index[protocol.Error](events); i < 0 || i > index[protocol.TaskComplete](events) {
		t.Errorf("no error before task_complete in %s", types(events))
	}
	usable(t, s, c)
}

func testSideBySide(t *testing.T, s *Subject) {
	s.Script(Step{Command: touch("made")}, Step{Text: "first"})
	asked, answer := make(chan struct{}), make(chan struct{})
	a := start(t, s, func(context.Context, protocol.EventMsg) elicit.Outcome {
		close(asked)
		<-answer
		return elicit.Outcome{Decision: elicit.Approved}
	})
	var both sync.WaitGroup
	both.Go(func() {
		a.completes(t, "make a file", "first")
	})
	select {
	case <-asked:
	case <-time.After(limit):
		t.Error(a.waiting("make a file", "exec_approval_request"))
	}
	s.Script(Step{Text: "second"})
	b := start(t, s, always(elicit.Denied))
	b.completes(t, "talk", "second")
	s.Script(Step{Text: "first"})
	close(answer)
	both.Wait()
	if !exists(a, "made") || exists(b, "made") {
		t.Error("the approved command did not run in its own folder")
	}
}

var errStop = errors.New("stopped by the suite")

func usable(t *testing.T, s *Subject, c *conversation) {
	t.Helper()
	s.Script(Step{Text: "still here"})
	c.decide = always(elicit.Denied)
	c.completes(t, "are you there?", "still here")
}

func completed(t *testing.T, events []protocol.EventMsg, err error, want string) {
	t.Helper()
	if err != nil {
		t.Errorf("the turn returned %v", err)
	}
	framed(t, events)
	end, ok := events[len(events)-1].(protocol.TaskComplete)
	if !ok || end.LastAgentMessage == nil || *end.LastAgentMessage != want {
		t.Errorf("the turn ended with %#v, want task_complete with %q; events: %s", events[len(events)-1], want,
			types(events))
	}
	if index[protocol.AgentMessage](events) < 0 {
		t.Errorf("no agent_message in %s", types(events))
	}
}

func aborted(t *testing.T, events []protocol.EventMsg, err error) {
	t.Helper()
	var abort *engine.AbortError
	if !errors.As(err, &abort) || abort.Reason != "" && abort.Reason != protocol.AbortInterrupted {
		t.Errorf("the turn returned %v, not an *engine.AbortError of an interrupt", err)
	}
	framed(t, events)
	end, ok := events[len(events)-1].(protocol.TurnAborted)
	if !ok {
		t.Errorf("an aborted turn ends with turn_aborted, not %s", types(events))
	} else if end.Reason != protocol.AbortInterrupted {
		t.Errorf("turn_aborted has the reason %q, want %q", end.Reason, protocol.AbortInterrupted)
	}
}

// framed checks how a turn begins and that it ends once.
func framed(t *testing.T, events []protocol.EventMsg) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("the turn emitted nothing")
	}
	if _, ok := events[0].(protocol.TaskStarted); !ok {
		t.Errorf("a turn begins with task_started, not %s", types(events))
	}
	if n := count[protocol.TaskComplete](events) + count[protocol.TurnAborted](events); n != 1 {
		t.Errorf("the turn ended %d times: %s", n, types(events))
	}
}

func index[E protocol.EventMsg](events []protocol.EventMsg) int {
	for i, m := range events {
		if _, ok := m.(E); ok {
			return i
		}
	}
	return -1
}

func count[E protocol.EventMsg](events []protocol.EventMsg) int {
	n := 0
	for _, m := range events {
		if _, ok := m.(E); ok {
			n++
		}
	}
	return n
}

func types(events []protocol.EventMsg) string {
	names := make([]string, len(events))
	for i, m := range events {
		names[i] = m.EventType()
	}
	return strings.Join(names, " ")
}

func touch(name string) []string { return []string{"touch", name} }

func exists(c *conversation, name string) bool {
	_, err := os.Stat(filepath.Join(c.cwd, name))
	return err == nil
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
