package appserver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

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
		var answers [2]string
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
		_ = turn(t, h, func(r *run) {
			var asked sync.WaitGroup
			for i, command := range []string{"rm x", "rm y"} {
				asked.Go(func() {
					answers[i] = r.ask(askCommand, "{"+ofTurn+`,"itemId":"c%d","command":%q,"cwd":"/work"}`, i, command)
				})
			}
			asked.Wait()
		})
		if answers != want {
			t.Errorf("%s: %q, want %q", decision, answers, want)
		}
	}
}
