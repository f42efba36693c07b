package mcp_test

import (
	"context"
	"encoding/json"
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
	"github.com/codexmcp/codexmcp/jsonrpc"
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
				a := arrive(t, p, "task", true)
				thread, task := a.begin("p")
				poll := `"taskId":"` + task + `","_meta":` + servertest.Capable(`"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`)
				a.send("tasks/get", poll)
				pass(limit)
				if tt.fetched {
					a.send("tasks/get", poll)
				}
				a.send("tasks/update", poll+`,"inputResponses":{"q1":{"action":"accept"}}`)
				pass(10 * time.Minute)
				synctest.Wait()
				if got := a.send("tasks/get", poll); strings.Count(got, changedNothing) < 2 { // in the texts, and in the structured content
					t.Errorf("tasks/get: %s", got)
				}
				if got := a.call("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, thread)); strings.Count(got, changedNothing) == 0 {
					t.Errorf("codex-wait: %s", got)
				}
				a.send("tasks/update", poll+`,"inputResponses":{"q1":{"action":"accept"}}`)
			})
		})
		t.Run("handshake, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connectDeaf(t, codexserver.New(late(tt.goes), options(t)), func() { pass(limit) })
				result := make(chan string, 1)
				go func() { result <- c("codex", `{"prompt":"p"}`) }()
				pass(limit + time.Second)
				pass(10 * time.Minute)
				first := <-result
				if strings.Contains(first, changedNothing) != (tt.goes > 0) {
					t.Errorf("the result: %s", first)
				}
				if got := c("codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, servertest.ThreadOf(t, first))); !strings.Contains(got, changedNothing) {
					t.Errorf("codex-wait: %s", got)
				}
			})
		})
	}
}

// connectDeaf connects a client that does not read cancellations: it accepts each question after wait. It
// returns a function that calls a tool.
func connectDeaf(t *testing.T, s *codexserver.Server, wait func()) func(tool, arguments string) string {
	ours, theirs := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return nil, nil
		}
		wait()
		return json.RawMessage(servertest.Accept), nil
	}), nil)
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- peer.Run(context.Background()) }()
	go func() { served <- s.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		peer.Close()
		<-running
		<-served
	})
	ask := func(method, params string) string {
		var raw json.RawMessage
		if err := peer.Call(t.Context(), method, json.RawMessage(params), &raw); err != nil {
			t.Error(err)
		}
		return string(raw)
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`)
	return func(tool, arguments string) string {
		return ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	}
}
