package appserver_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestParallelApprovals plays a turn that asks about two commands at once. A person is asked
// about one at a time, and about nothing more after an abort.
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
