package tools_test

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
)

// TestGivenUpCalls checks what codex-list and codex-wait say of a turn whose call
// the client cancelled, or no longer waits for.
func TestGivenUpCalls(t *testing.T) {
	e := &servertest.Engine{Turn: func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		words := protocol.TextOf(in)
		if name, ok := strings.CutPrefix(words, "change "); ok {
			host.Emit(protocol.PatchApplyBegin{CallID: "p", Changes: map[string]protocol.FileChange{name: {Add: &protocol.FileContent{Content: "x\n"}}}})
			host.Emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
			if err := servertest.Wait(ctx, time.Minute); err != nil {
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
			}
		}
		host.Emit(protocol.AgentMessage{Message: "I did: " + words + "\nand more"})
		return nil
	}}
	const aborted = "Turn aborted: the client cancelled the call: context canceled; changed: /work/a"
	for _, tt := range []struct {
		name    string
		cancels bool
		list    string
		wait    string
	}{
		{"cancelled", true, "aborted: " + aborted, "aborted"},
		{"left", false, "completed: I did: change /work/a; changed: /work/a", "completed"},
	} {
		for era, meta := range map[string]string{"handshake": "", "2026-07-28": `,"_meta":` + servertest.Capable(`"roots":{}`)} {
			t.Run(tt.name+"/"+era, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := codexserver.New(e, nil)
					var c *servertest.Client
					if meta == "" {
						c = servertest.Connect(t, server, nil)
					} else {
						c = servertest.Dial(t, server, nil)
					}
					type result struct {
						Content           []struct{ Text string }
						StructuredContent struct {
							ThreadID, Content string
							Conversations     []struct{ ThreadID, Status, Doing string }
							Threads           []struct{ Status, Content string }
						}
					}
					call := func(tool, arguments string) (r result) {
						t.Helper()
						got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, tool, arguments, meta))
						if err := json.Unmarshal([]byte(got), &r); err != nil {
							t.Fatal(got)
						}
						return r
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go func() {
						params := json.RawMessage(`{"name":"codex","arguments":{"prompt":"change /work/a"}` + meta + `}`)
						_ = c.Call(ctx, "tools/call", params, nil) // the host does not look at it
					}()
					time.Sleep(time.Second)
					conversations := call("codex-list", `{}`).StructuredContent.Conversations
					if len(conversations) == 0 || conversations[len(conversations)-1].Status != "running" {
						t.Fatalf("codex-list: %+v", conversations)
					}
					id := conversations[len(conversations)-1].ThreadID
					if tt.cancels {
						cancel()
					}
					time.Sleep(2 * time.Minute)
					conversations = call("codex-list", `{}`).StructuredContent.Conversations
					last := conversations[len(conversations)-1]
					if got := last.Status + ": " + last.Doing; got != tt.list {
						t.Errorf("codex-list says %q, want %q", got, tt.list)
					}
					arguments := `{}`
					if !tt.cancels { // the server does not know that nobody has the result
						arguments = fmt.Sprintf(`{"threadIds":[%q]}`, id)
					}
					waited := call("codex-wait", arguments)
					if rows := waited.StructuredContent.Threads; len(rows) != 1 || rows[0].Status != tt.wait {
						t.Errorf("codex-wait: %+v, want %s", rows, tt.wait)
					}
					if !strings.Contains(waited.Content[len(waited.Content)-1].Text, "; changed: /work/a]") {
						t.Errorf("codex-wait: %+v", waited.Content)
					}
				})
			})
		}
	}
}
