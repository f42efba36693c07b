package board_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestAlike lets two questions of a turn wait, and answers the first. An approval for the
// session also answers the second if it asks exactly the same; nothing else does.
func TestAlike(t *testing.T) {
	exec := func(change func(*protocol.ExecApprovalRequest)) protocol.ExecApprovalRequest {
		e := protocol.ExecApprovalRequest{CallID: "c2", Command: []string{"make"}, Cwd: "/work", Reason: "another reason", Content: "sum", LeavesSandbox: true}
		change(&e)
		return e
	}
	same := func(*protocol.ExecApprovalRequest) {}
	for _, tt := range []struct {
		name   string
		answer string
		second protocol.EventMsg
		once   bool
		turn   string
		late   string // the answer to the second question, at the same moment
		want   string // the decision about the second question, and with which call
	}{
		{"the same", servertest.ForSession, exec(same), false, "1", "", "approved_for_session c1"},
		{"the same, once", servertest.Accept, exec(same), false, "1", "", "denied "},
		{"the same, declined", servertest.Decline, exec(same), false, "1", "", "denied "},
		{"the same, stopped", servertest.Cancel, exec(same), false, "1", "", "denied "},
		{"the same, denied at the same moment", servertest.ForSession, exec(same), false, "1", servertest.Decline, "denied "},
		{"another turn", servertest.ForSession, exec(same), false, "2", "", "denied "},
		{"one that offers no session", servertest.ForSession, exec(same), true, "1", "", "denied "},
		{"another word", servertest.ForSession, exec(func(e *protocol.ExecApprovalRequest) { e.Command = []string{"make", "x"} }), false, "1", "", "denied "},
		{"another folder", servertest.ForSession, exec(func(e *protocol.ExecApprovalRequest) { e.Cwd = "/work/x" }), false, "1", "", "denied "},
		{"another content", servertest.ForSession, exec(func(e *protocol.ExecApprovalRequest) { e.Content = "other" }), false, "1", "", "denied "},
		{"in the sandbox", servertest.ForSession, exec(func(e *protocol.ExecApprovalRequest) { e.LeavesSandbox = false }), false, "1", "", "denied "},
		{"another program", servertest.ForSession, exec(func(e *protocol.ExecApprovalRequest) { e.Program = "/work/make" }), false, "1", "", "denied "},
		{"a patch", servertest.ForSession, protocol.PatchApprovalRequest{CallID: "c2"}, false, "1", "", "denied "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var record servertest.Journal
				o := &board.Options{Questions: elicit.Options{Timeout: time.Minute}, Record: board.NewRecord(&record)}
				b := board.New(o, nil)
				defer b.Attach(raw{approval.ByDesk, func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
					time.Sleep(time.Second) // both wait
					first, _ := r.Event.(protocol.ExecApprovalRequest)
					switch {
					case first.CallID == "c1":
						return r.Question.Read([]byte(tt.answer), nil), nil
					case tt.late != "":
						return r.Question.Read([]byte(tt.late), nil), nil
					}
					<-ctx.Done()
					return r.Question.ReadError(ctx.Err(), nil), nil
				}})()
				ask := func(e protocol.EventMsg, once bool, turn string) <-chan approval.Decision {
					decided := make(chan approval.Decision, 1)
					r := &approval.Request{Thread: approval.Thread{ID: "t"}, Turn: turn, Event: e, Question: &elicit.Question{Once: once}}
					go func() { decided <- b.Decide(t.Context(), r) }()
					return decided
				}
				first := exec(func(e *protocol.ExecApprovalRequest) { e.CallID, e.Reason = "c1", "a reason" })
				one, two := ask(first, false, "1"), ask(tt.second, tt.once, tt.turn)
				<-one
				d := <-two
				if got := string(d.Decision) + " " + d.With; got != tt.want {
					t.Errorf("the second: %q, want %q", got, tt.want)
				}
				if covered := strings.HasSuffix(tt.want, "c1"); covered != strings.Contains(record.String(), `"with":"c1"`) || covered && d.By != approval.ByDesk {
					t.Errorf("by %s, recorded %s", d.By, &record)
				}
			})
		})
	}
}

// TestAlikeWithoutContent leaves a question open that does not say what its words name.
func TestAlikeWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := board.New(&board.Options{Questions: elicit.Options{Timeout: time.Minute}}, nil)
		defer b.Attach(raw{approval.ByClient, func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
			time.Sleep(time.Second)
			if exec := r.Event.(protocol.ExecApprovalRequest); exec.CallID == "c1" {
				return r.Question.Read([]byte(servertest.ForSession), nil), nil
			}
			<-ctx.Done()
			return r.Question.ReadError(ctx.Err(), nil), nil
		}})()
		decided := make(chan approval.Decision, 2)
		for _, id := range []string{"c1", "c2"} {
			r := &approval.Request{Event: protocol.ExecApprovalRequest{CallID: id, Command: []string{"make"}}, Question: &elicit.Question{}}
			go func() { decided <- b.Decide(t.Context(), r) }()
		}
		<-decided
		if d := <-decided; d.Decision != elicit.Denied {
			t.Errorf("the second: %s", d.Decision)
		}
	})
}
