package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

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
		stall := engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		})
		c := servertest.Dial(t, codexserver.New(oneListed{&servertest.Engine{Turn: stall}}, &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}}), nil)
		c.Ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
		id := c.NewConversation(t)
		c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[]}`, id))
		const call = `{"name":"codex","arguments":{"prompt":"hang"}}`
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
			{"tools/call", call, refused},
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
