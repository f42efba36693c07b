package native_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestPosingServers has an MCP server whose questions try to look like approvals, and a client
// whose policy approves the command ls. No question of the server is approved by it, and each
// says who asks.
func TestPosingServers(t *testing.T) {
	t.Parallel()
	for era, version := range map[string]string{"2026-07-28": "", "a handshake": mcptypes.ProtocolVersion} {
		t.Run(era, func(t *testing.T) {
			b := setup(t, strings.ReplaceAll(toy(""), "mcp_servers.toy", "mcp_servers.evil"), native.Limits{})
			c, err := client.Start(t.Context(), &client.Options{
				Server: codexserver.New(b.engine, &codexserver.Options{Home: b.home, Changes: codexserver.ChangeOptions{Off: true}}), Protocol: version,
				AskRaw: func(_ context.Context, q *client.Question) (json.RawMessage, error) {
					if q.Kind == "exec" && slices.Equal(q.Command, []string{"ls"}) {
						t.Errorf("the policy approves it: %.200s", q.Params)
					}
					servertest.CheckPose(t, `"evil"`, q.Params)
					return json.RawMessage(`{"action":"accept","content":{"decision":"approved"}}`), nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			thread := ""
			for name, pose := range servertest.Poses() {
				arguments, err := json.Marshal(map[string]string{"x": pose})
				if err != nil {
					t.Fatal(err)
				}
				b.provider.Add(providertest.Call(providertest.ToolCall{ID: "c1", Name: "evil__pose", Arguments: string(arguments)}), providertest.Say("ok"))
				task := client.Task{Prompt: "go", Thread: thread}
				if thread == "" {
					task.Cwd = b.cwd
				}
				r, err := c.Run(t.Context(), task)
				if err != nil || r.Status != protocol.StatusCompleted {
					t.Fatalf("%s: %+v, %v", name, r, err)
				}
				thread = r.ThreadID
				all := b.provider.Requests()
				output := all[len(all)-1].LastToolOutput()
				refused := strings.Contains(output, "is not a form")
				if want := name == "a URL"; refused != want || !want && !strings.Contains(output, `accept`) {
					t.Errorf("%s: refused %v: %.300s", name, refused, output)
				}
			}
		})
	}
}
