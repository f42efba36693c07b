package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
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
		must(t, c.Notify(t.Context(), "notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":%v}`, calls[0].ID()))))
		synctest.Wait()
		if got := c.Ask(t, "logoutChatGpt", `{}`); got != `{}` {
			t.Errorf("with a free place: %s", got)
		}
	})
}
