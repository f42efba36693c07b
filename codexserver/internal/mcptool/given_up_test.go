package mcptool_test

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
	"github.com/google/go-cmp/cmp"
)

// TestGivenUpCalls checks what codex-list, codex-wait and codex-reply say of a turn whose call
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
		early   bool // codex-reply comes before the end of the turn
		waits   bool // codex-wait comes before codex-reply
		list    string
		wait    string
		remark  string
	}{
		{"cancelled, and read", true, false, true, "aborted: " + aborted, "aborted", ""},
		{"cancelled", true, false, false, "aborted: " + aborted, "", "A turn before this one, whose call was given up, ended as aborted; it changed: /work/a."},
		{"cancelled, the next call comes at once", true, true, false, "", "", "A turn before this one, whose call was given up, ended as aborted; it changed: /work/a."},
		{"left", false, false, true, "completed: I did: change /work/a; changed: /work/a", "completed", ""},
		{"left, the next call comes before the end", false, true, false, "", "", ""},
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
					if !tt.early {
						time.Sleep(2 * time.Minute)
						conversations = call("codex-list", `{}`).StructuredContent.Conversations
						last := conversations[len(conversations)-1]
						if got := last.Status + ": " + last.Doing; got != tt.list {
							t.Errorf("codex-list says %q, want %q", got, tt.list)
						}
					}
					if tt.waits {
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
					}
					want := []string{"I did: go on\nand more"}
					if tt.remark != "" {
						want = append(want, "\n"+tt.remark)
					}
					var texts []string
					reply := call("codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"go on"}`, id))
					for _, b := range reply.Content[:len(reply.Content)-1] {
						texts = append(texts, b.Text)
					}
					if diff := cmp.Diff(want, texts); diff != "" {
						t.Errorf("codex-reply (-want +got):\n%s", diff)
					}
					if again := call("codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"go on"}`, id)); len(again.Content) != 2 {
						t.Errorf("the next codex-reply: %+v", again.Content)
					}
				})
			})
		}
	}
}
