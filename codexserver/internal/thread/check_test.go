package thread_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// examined is an engine and its conversation, whose checks end as a list says: with an exit code, or an error.
type examined struct {
	ends  []any
	fails error // a turn

	host  engine.Host
	turns []string // what each turn is asked
}

func (e *examined) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	e.host = h
	return e, nil
}

func (e *examined) ID() string { return "7" }

func (e *examined) Close() error { return nil }

func (e *examined) Turn(_ context.Context, in protocol.TurnInput) error {
	e.turns = append(e.turns, protocol.TextOf(in.Items))
	return e.fails
}

func (e *examined) Check(_ context.Context, l engine.Line) (string, error) {
	end := e.ends[0]
	e.ends = e.ends[1:]
	if err, is := end.(error); is {
		return "", err
	}
	e.host.Emit(protocol.ExecCommandBegin{CallID: l.ID})
	e.host.Emit(protocol.ExecCommandEnd{CallID: l.ID, ExitCode: end.(int), FormattedOutput: "the output"})
	return "", nil
}

// TestTries runs a turn again as often as its check fails, up to the last try, but not after an error.
func TestTries(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		ends   []any // of the checks
		fails  error // each turn
		before int   // tries in another process
		turns  int
		status protocol.TurnStatus
	}{
		{"it passes", []any{0}, nil, 0, 1, protocol.StatusCompleted},
		{"it fails once", []any{1, 0}, nil, 0, 2, protocol.StatusCompleted},
		{"it fails before the last try", []any{1, 1, 0}, nil, 0, 3, protocol.StatusCompleted},
		{"it fails each time", []any{1, 1, 1}, nil, 0, 3, protocol.StatusIncomplete},
		{"the last but one try", []any{1, 1}, nil, 1, 2, protocol.StatusIncomplete},
		{"the last try", []any{1}, nil, 2, 1, protocol.StatusIncomplete},
		{"after the last try", []any{1}, nil, 3, 1, protocol.StatusIncomplete},
		{"no verdict", []any{-1}, nil, 0, 1, protocol.StatusIncomplete},
		{"an error", []any{broken}, nil, 0, 1, protocol.StatusAborted},
		{"an error of a further try", []any{1, broken}, nil, 0, 2, protocol.StatusAborted},
		{"the turn fails", nil, broken, 0, 1, protocol.StatusFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &examined{ends: tt.ends, fails: tt.fails}
			s := thread.NewTable(e, &approve.Options{}).Share("")
			th := must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{}))(t)
			a := alone()
			a.Turn.Order.Checks, a.Turn.Order.Tries = []string{"make check"}, tt.before
			err := th.Begin(t.Context(), a, protocol.TurnInput{Items: protocol.TextInput("do it")}).Wait()
			if want := tt.status == protocol.StatusAborted || tt.fails != nil; (err != nil) != want {
				t.Errorf("error %v", err)
			}
			must.Equal(t, "turns and checks left, and the end", fmt.Sprint(tt.turns, 0, tt.status), fmt.Sprint(len(e.turns), len(e.ends), a.Turn.State().Status))
			for i, asked := range e.turns {
				if want := i > 0; strings.Contains(asked, "exit code 1 at try") != want || strings.Contains(asked, "the output") != want {
					t.Errorf("turn %d is asked %q", i, asked)
				}
			}
			must.OK(t, s.Close())
		})
	}
}

// TestSetUpNeedsChecker fails a turn with a set-up on an engine that runs no lines, before its engine hears of it.
func TestSetUpNeedsChecker(t *testing.T) {
	ran := false
	e := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error { ran = true; return nil })
	s := thread.NewTable(e, &approve.Options{}).Share("")
	th := must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{}))(t)
	a := alone()
	a.Turn.Order.Setup = &turn.Setup{Line: "npm ci"}
	err := th.Begin(t.Context(), a, protocol.TurnInput{Items: protocol.TextInput("do it")}).Wait()
	if err == nil || !strings.Contains(err.Error(), "this engine sets up no worktrees") || ran || a.Turn.State().Status != protocol.StatusFailed {
		t.Errorf("%v, and the engine ran a turn: %t", err, ran)
	}
	must.OK(t, s.Close())
}

// TestSetUpEnds has a turn go on after its set-up, or not.
func TestSetUpEnds(t *testing.T) {
	for _, tt := range []struct {
		end    any
		turns  int
		status protocol.TurnStatus
	}{
		{0, 1, protocol.StatusCompleted}, {1, 0, protocol.StatusFailed}, {127, 0, protocol.StatusFailed}, {-1, 0, protocol.StatusFailed},
		{errors.New("broken"), 0, protocol.StatusAborted},
	} {
		e := &examined{ends: []any{tt.end}}
		s := thread.NewTable(e, &approve.Options{}).Share("")
		th := must.Get(s.Start(t.Context(), admit.Trusted(), protocol.Config{}, thread.Attend{}))(t)
		a := alone()
		a.Turn.Order.Setup = &turn.Setup{Line: "npm ci"}
		err := th.Begin(t.Context(), a, protocol.TurnInput{Items: protocol.TextInput("do it")}).Wait()
		must.Equal(t, fmt.Sprint(tt.end), fmt.Sprint(tt.turns, tt.status, tt.turns == 0), fmt.Sprint(len(e.turns), a.Turn.State().Status, err != nil))
		must.OK(t, s.Close())
	}
}
