package enginetest_test

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// tiny has the model of an engine: a list of steps.
type tiny struct {
	mu    sync.Mutex
	steps []enginetest.Step
}

func (e *tiny) next() (enginetest.Step, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.steps) == 0 {
		return enginetest.Step{}, false
	}
	s := e.steps[0]
	e.steps = e.steps[1:]
	return s, true
}

// turn is the engine: an [engine.TurnFunc].
func (e *tiny) turn(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
	cwd := engine.ConfigOf(ctx).Cwd
	for {
		s, ok := e.next()
		switch {
		case !ok || s.Fail:
			return errors.New("the model has nothing to say")
		case s.Command == nil:
			host.Emit(protocol.AgentMessage{Message: s.Text})
			return nil
		}
		out := host.Ask(ctx, approval.Command{CallID: "c", Command: s.Command, Cwd: cwd})
		switch out.Decision {
		case elicit.Approved:
			if err := run(ctx, host, cwd, s.Command); err != nil {
				return err
			}
		case elicit.Abort:
			return &engine.AbortError{}
		}
	}
}

func run(ctx context.Context, host engine.Host, cwd string, argv []string) error {
	host.Emit(protocol.ExecCommandBegin{CallID: "c", Command: argv, Cwd: cwd})
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = cwd
	cmd.Stdout = output{host}
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	host.Emit(protocol.ExecCommandEnd{CallID: "c", ExitCode: cmd.ProcessState.ExitCode()})
	return err
}

type output struct{ host engine.Host }

func (o output) Write(b []byte) (int, error) {
	o.host.Emit(protocol.ExecCommandOutputDelta{CallID: "c", Stream: protocol.Stdout, Chunk: b})
	return len(b), nil
}

func TestSuite(t *testing.T) {
	enginetest.Run(t, func(*testing.T) *enginetest.Subject {
		e := &tiny{}
		return &enginetest.Subject{Engine: engine.TurnFunc(e.turn), Script: func(steps ...enginetest.Step) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.steps = steps
		}}
	})
}

func ExampleRun() {
	// In a test file of an engine's package:
	_ = func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
			e := &tiny{}
			return &enginetest.Subject{
				Engine: engine.TurnFunc(e.turn),
				Config: protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted},
				Script: func(steps ...enginetest.Step) { e.steps = steps },
			}
		})
	}
	// Output:
}
