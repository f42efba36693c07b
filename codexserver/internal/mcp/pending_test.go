package mcp_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestPending has a turn with many open questions, its own and those of MCP servers. No more are
// open than the limit of pending ones says.
func TestPending(t *testing.T) {
	const most, questions = 3, 10
	for era, version := range map[string]string{"2026-07-28": "", "a handshake": mcptypes.ProtocolVersion} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turn := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
					f, err := elicit.ServerQuestion("toy", json.RawMessage(`{"message":"m"}`))
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
