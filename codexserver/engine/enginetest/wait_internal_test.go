package enginetest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const hangingVar = "ENGINETEST_HANGING"

// hanging are tests of the suite with engines that leave out an event, and what the suite
// then reports.
var hanging = map[string]struct {
	run  func(*testing.T, *Subject)
	turn engine.TurnFunc
	want string
}{
	"no end": {testText, func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
		<-ctx.Done()
		return ctx.Err()
	}, `the turn "say one" waits for task_complete or turn_aborted; there were: task_started`},
	"no output": {testInterruptWhileRunning, func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.ApproveExec(ctx, protocol.ExecApprovalRequest{})
		host.Emit(protocol.ExecCommandBegin{})
		<-ctx.Done()
		return ctx.Err()
	}, `the turn "wait" waits for exec_command_output_delta; there were: task_started exec_approval_request exec_command_begin`},
	"no question": {testSideBySide, func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: "second"})
		<-ctx.Done()
		return ctx.Err()
	}, `the turn "make a file" waits for exec_approval_request; there were: task_started agent_message`},
}

// TestHanging runs in a child process, because the tests of the suite fail. The time is that
// of a bubble.
func TestHanging(t *testing.T) {
	if name := os.Getenv(hangingVar); name != "" {
		synctest.Test(t, func(t *testing.T) {
			hanging[name].run(t, &Subject{Engine: hanging[name].turn, Script: func(...Step) {}})
		})
		return
	}
	for name, tt := range hanging {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHanging$")
		cmd.Env = append(os.Environ(), hangingVar+"="+name)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want+"\n") {
			t.Errorf("%s: want %q, have:\n%s", name, tt.want, out)
		}
	}
}

// TestAbortWithoutReason: an engine need not repeat the reason of its event in its error.
func TestAbortWithoutReason(t *testing.T) {
	events := []protocol.EventMsg{protocol.TaskStarted{}, protocol.TurnAborted{Reason: protocol.AbortInterrupted}}
	aborted(t, events, &engine.AbortError{})
}
