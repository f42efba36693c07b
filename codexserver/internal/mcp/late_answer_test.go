package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
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

// TestPending has a turn with many open questions, its own and those of MCP servers. No more are
// open than the limit of pending ones says.
func TestPending(t *testing.T) {
	const most, questions = 3, 10
	for era, version := range map[string]string{"2026-07-28": "", "a handshake": mcptypes.ProtocolVersion} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turn := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
					f, err := approval.ServerQuestion("toy", json.RawMessage(`{"message":"m"}`))
					if err != nil {
						return err
					}
					var all sync.WaitGroup
					for range questions {
						all.Go(func() {
							if answer, err := host.Elicit(ctx, f); err != nil || string(answer) != `{"action":"accept","content":{}}` {
								t.Errorf("%s, %v", answer, err)
							}
						})
						all.Go(func() {
							if out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"make"}, Cwd: "/"}); out.Decision != elicit.Approved {
								t.Errorf("%+v", out)
							}
						})
					}
					all.Wait()
					return nil
				})
				var mu sync.Mutex
				open, asked := 0, 0
				c, err := client.Start(t.Context(), &client.Options{
					Server:   codexserver.New(turn, &codexserver.Options{Approvals: elicit.Options{MaxPending: most}, Changes: codexserver.ChangeOptions{Off: true}}),
					Protocol: version,
					Ask: func(context.Context, *client.Question) elicit.Outcome {
						mu.Lock()
						asked++
						if open++; open > most {
							t.Errorf("%d questions are open", open)
						}
						mu.Unlock()
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						open--
						return elicit.Outcome{Decision: elicit.Approved}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if r, err := c.Run(t.Context(), client.Task{Prompt: "p"}); err != nil || r.Status != protocol.StatusCompleted || asked != 2*questions {
					t.Errorf("%+v, %v, %d asked", r, err, asked)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
