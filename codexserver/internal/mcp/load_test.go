package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// FuzzSession sends lines of the fuzzer, and checks that the server still answers.
func FuzzSession(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"codex","arguments":{"prompt":"p","config":{"a.b":1}}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex-reply","arguments":{"prompt":"p","threadId":"past"},"_meta":{"progressToken":"t"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"newConversation","params":{"approvalPolicy":"never","sandbox":"read-only"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"addConversationListener","params":{"conversationId":"past"}}`,
		`{"jsonrpc":"2.0","id":6,"method":"sendUserMessage","params":{"conversationId":"past","items":[{"type":"text","data":{"text":"x"}}]}}`,
		`{"jsonrpc":"2.0","id":9,"method":"fuzzyFileSearch","params":{"query":"q","roots":["/"],"cancellationToken":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		ours := servertest.Lines(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil))
		const probe = `{"jsonrpc":"2.0","id":"probe \u2713","method":"ping"}`
		lines := append(strings.Split(string(in), "\n"), probe)
		for _, line := range lines {
			writeAll(t, ours, line)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for alive := false; !alive; {
			answer, err := ours.Read(ctx)
			if err != nil {
				t.Fatalf("no sign of life: %v", err)
			}
			alive = strings.Contains(string(answer), "probe ")
		}
	})
}

// oneListed is an engine that lists one conversation, however many it has.
type oneListed struct{ *servertest.Engine }

func (oneListed) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	return &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{{ConversationID: "past", Preview: "before"}}}, nil
}

// TestStalledCalls lets as many calls hang as the server takes. Short requests are still
// answered.
func TestStalledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Connect(t, codexserver.New(oneListed{&servertest.Engine{}}, &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}}), nil)
		id := c.NewConversation(t)
		c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"wait:9h"}}]}`, id))
		running := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"wait:9h","background":true}`))
		call := fmt.Sprintf(`{"name":"codex-wait","arguments":{"threadIds":[%q]}}`, running)
		const most = 4096
		var calls []*jsonrpc.Call
		for range most {
			calls = append(calls, c.Start(t.Context(), "tools/call", json.RawMessage(call)))
		}
		synctest.Wait()
		const refused = "4096 requests are under way"
		for _, tt := range []struct{ method, params, want string }{
			{"ping", `{}`, `{}`},
			{"tools/list", `{}`, `"codex-reply"`},
			{"getAuthStatus", `{}`, `apikey`},
			{"tools/call", `{"name":"codex-list","arguments":{}}`, `past`},
			{"interruptConversation", fmt.Sprintf(`{"conversationId":%q}`, id), `interrupted`},
			{"tools/call", fmt.Sprintf(`{"name":"codex-interrupt","arguments":{"threadId":%q}}`, id), `Nothing was running.`},
			{"tools/call", call, refused},
			{"tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`, refused},
			{"newConversation", `{}`, refused},
			{"logoutChatGpt", `{}`, refused},
		} {
			if got := c.Ask(t, tt.method, tt.params); !strings.Contains(got, tt.want) {
				t.Errorf("%s %s: %.300s, want %s", tt.method, tt.params, got, tt.want)
			}
		}
		if err := c.Notify(t.Context(), "notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":%v}`, calls[0].ID()))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := c.Ask(t, "logoutChatGpt", `{}`); got != `{}` {
			t.Errorf("with a free place: %s", got)
		}
	})
}

// TestMemoryOfALongAnswer serves an answer of 8 MiB to a client that reads, and bounds the
// memory for it. The answer is sent twice, in two events, and cut in the result.
func TestMemoryOfALongAnswer(t *testing.T) {
	const size = 8 << 20
	text := strings.Repeat("x", size)
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: text})
		return nil
	})
	n := 0
	count := writer(func(b []byte) (int, error) { n += len(b); return len(b), nil })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := codexserver.New(e, nil).Serve(t.Context(), jsonrpc.Lines(strings.NewReader(oneJob+"\n"), count, io.NopCloser(nil))); err != nil || n < 2*size || n > 2*size+1<<18 {
		t.Errorf("%d bytes on the wire, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if times := float64(after.TotalAlloc-before.TotalAlloc) / size; times > 20 { // it was 23; the race detector adds to the 11 that it is without
		t.Errorf("memory of %.1f times the answer was used", times)
	} else {
		t.Logf("memory of %.1f times the answer was used, %.1f held", times, float64(after.HeapSys)/size)
	}
}
