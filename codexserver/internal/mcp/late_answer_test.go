package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const changedNothing = "An answer about `touch` came after its limit, and changed nothing."

// TestLateAnswer accepts a question after its limit: while the turn goes on, and after its end, when
// the result of a task was not fetched, and when it was or the call was answered.
func TestLateAnswer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		goes    time.Duration // how long the turn goes on after the question
		fetched bool
	}{
		{"the turn goes on", 5 * time.Minute, false},
		{"it has ended", 0, false},
		{"the result is known", 0, true},
	} {
		options := func(t *testing.T) *codexserver.Options {
			return &codexserver.Options{
				Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}, Approvals: elicit.Options{Timeout: time.Minute}, Tasks: codexserver.TaskOptions{Grace: -1},
			}
		}
		const limit = 2 * time.Minute
		late := func(goes time.Duration) *servertest.Engine {
			return &servertest.Engine{Turn: func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
				host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: []string{"touch"}, Cwd: "/"})
				if goes > 0 {
					<-time.After(goes)
				}
				return nil
			}}
		}
		t.Run("task, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := codexserver.New(late(tt.goes), options(t)).Principal(t.Context(), "ann")
				defer p.Close()
				a := arrive(t, p, servertest.Polls, true)
				thread, task := begin(t, a, servertest.Polls, "p")
				about := func(method, more string) string {
					raw, err := a.Send(t.Context(), method, fmt.Sprintf(`"taskId":%q%s`, task, more))
					return fmt.Sprint(string(raw), err)
				}
				about("tasks/get", "")
				pass(limit)
				if tt.fetched {
					about("tasks/get", "")
				}
				about("tasks/update", `,"inputResponses":{"q1":{"action":"accept"}}`)
				pass(10 * time.Minute)
				synctest.Wait()
				if got := about("tasks/get", ""); strings.Count(got, changedNothing) < 2 { // in the texts, and in the structured content
					t.Errorf("tasks/get: %s", got)
				}
				if got := a.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); strings.Count(got, changedNothing) == 0 {
					t.Errorf("codex-wait: %s", got)
				}
				about("tasks/update", `,"inputResponses":{"q1":{"action":"accept"}}`)
			})
		})
		t.Run("handshake, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Join(t, codexserver.New(late(tt.goes), options(t)), servertest.Host{
					Era: servertest.Handshake, Deaf: true, Answer: servertest.After(limit, servertest.Accept),
				})
				result := make(chan string, 1)
				go func() { result <- c.Use(t.Context(), "codex", `{"prompt":"p"}`) }()
				pass(limit + time.Second)
				pass(10 * time.Minute)
				first := <-result
				if strings.Contains(first, changedNothing) != (tt.goes > 0) {
					t.Errorf("the result: %s", first)
				}
				if got := c.Use(t.Context(), "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, servertest.ThreadOf(t, first))); !strings.Contains(got, changedNothing) {
					t.Errorf("codex-wait: %s", got)
				}
			})
		})
	}
}
