package appserver_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestQuestionsWaitTogether asks about two commands at once. Both questions are open, so that
// places can show them together. An abort answers both, even if the other one was approved at
// the same moment.
func TestQuestionsWaitTogether(t *testing.T) {
	for decision, want := range map[elicit.Decision][2]string{
		elicit.Approved: {`{"decision":"accept"}`, `{"decision":"accept"}`},
		elicit.Denied:   {`{"decision":"accept"}`, `{"decision":"decline"}`},
		elicit.Abort:    {`{"decision":"cancel"}`, `{"decision":"cancel"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var answers [2]string
			done := make(chan struct{})
			f := newFake(t)
			f.turn = func(r *run) {
				var asked sync.WaitGroup
				for i, command := range []string{"rm x", "rm y"} {
					asked.Go(func() {
						answers[i] = r.ask(askCommand, "{"+ofTurn+`,"itemId":"c%d","command":%q,"cwd":"/work"}`, i, command)
					})
				}
				asked.Wait()
				close(done)
				answered(r)
			}
			other := make(chan bool)
			h := &recorder{exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
				if q.Command[1] == "y" {
					other <- true
					return elicit.Outcome{Decision: decision}
				}
				<-other
				synctest.Wait() // the other one is decided
				return elicit.Outcome{Decision: elicit.Approved}
			}}
			_ = start(t, f.engine(appserver.Options{}), h).Turn(t.Context(), text("go"))
			<-done
			if answers != want {
				t.Errorf("%s: %q, want %q", decision, answers, want)
			}
		})
	}
}

// TestParallelApprovals plays a turn that asks about two commands, about nothing more after an
// abort.
func TestParallelApprovals(t *testing.T) {
	for _, test := range []struct {
		file     string
		decision elicit.Decision
		asked    int32
		began    int
		last     string
	}{
		{"codemode-parallel", elicit.Approved, 2, 2, "task_complete"},
		{"codemode-parallel-cancel", elicit.Abort, 1, 0, "turn_aborted"},
	} {
		t.Run(test.file, func(t *testing.T) {
			steps := readRecording(t, "testdata/parallel/"+test.file+".ndjson")
			synctest.Test(t, func(t *testing.T) {
				var open, asked atomic.Int32
				h := &recorder{exec: func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
					if open.Add(1) != 1 {
						t.Error("two questions are open at once")
					}
					synctest.Wait() // the other one has come by now
					asked.Add(1)
					open.Add(-1)
					return elicit.Outcome{Decision: test.decision}
				}}
				err := play(t, steps, h)
				types := h.types()
				if asked.Load() != test.asked || h.count("exec_command_begin") != test.began || types[len(types)-1] != test.last {
					t.Errorf("asked %d times, error %v, events %v", asked.Load(), err, types)
				}
			})
		})
	}
}
