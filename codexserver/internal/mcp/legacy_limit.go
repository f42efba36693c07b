package mcp

import (
	"context"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

const (
	// maxLong is how many requests that may take long are handled at a time. More are
	// refused, because they would wait for calls that may never end.
	maxLong = 4096
	// spare is how many other requests are handled at a time.
	spare = 1024
)

// MaxConcurrent is how many requests of a session are handled at a time.
const LegacyMaxConcurrent = maxLong + spare

// short are the methods that never take long. Whether a call of a tool does depends on the
// tool.
var short = map[string]bool{
	mcptypes.Initialize.Name():             true,
	mcptypes.Ping.Name():                   true,
	mcptypes.ToolsList.Name():              true,
	mcptypes.LoggingSetLevel.Name():        true,
	mcptypes.ResourcesList.Name():          true,
	mcptypes.ResourcesTemplatesList.Name(): true,
	"addConversationListener":              true,
	"removeConversationListener":           true,
	"interruptConversation":                true,
	"listConversations":                    true,
	"getAuthStatus":                        true,
	"getUserAgent":                         true,
	"getUserSavedConfig":                   true,
	"userInfo":                             true,
	"cancelLoginChatGpt":                   true,
}

// enter counts a request that may take long, and fails if there are more than maxLong. After a
// success the caller must leave ss.long.
func (ss *LegacySession) enter() error {
	if !ss.long.enter(maxLong) {
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded, "overloaded: "+tooMany, maxLong)
	}
	return nil
}

// limited returns h with the limit. Requests that are handled in order, and calls of tools,
// count themselves.
func (ss *LegacySession) limited(h jsonrpc.Handler) jsonrpc.Handler {
	counted := map[string]bool{mcptypes.ToolsCall.Name(): true}
	for _, method := range LegacyInline() {
		counted[method] = true
	}
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() || short[r.Method] || counted[r.Method] {
			return h.ServeRPC(ctx, r)
		}
		if err := ss.enter(); err != nil {
			return nil, err
		}
		defer ss.long.leave()
		return h.ServeRPC(ctx, r)
	})
}
