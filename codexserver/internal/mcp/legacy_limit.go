package mcp

import (
	"context"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
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

// limit counts the running requests that may take long. The zero limit is ready.
type limit struct{ long atomic.Int64 }

// enter counts a request, and fails if there are more than maxLong. After a success the
// caller must call leave.
func (l *limit) enter() error {
	if l.long.Add(1) > maxLong {
		l.leave()
		return jsonrpc.Errorf(jsonrpc.CodeOverloaded,
			"overloaded: %d requests are under way; send this one again when one of them has ended or was cancelled", maxLong)
	}
	return nil
}

func (l *limit) leave() { l.long.Add(-1) }

// handler returns h with the limit. Requests that are handled in order, and calls of tools,
// count themselves.
func (l *limit) handler(h jsonrpc.Handler) jsonrpc.Handler {
	counted := map[string]bool{mcptypes.ToolsCall.Name(): true}
	for _, method := range LegacyInline() {
		counted[method] = true
	}
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() || short[r.Method] || counted[r.Method] {
			return h.ServeRPC(ctx, r)
		}
		if err := l.enter(); err != nil {
			return nil, err
		}
		defer l.leave()
		return h.ServeRPC(ctx, r)
	})
}

// enterTool is enter for a call of a tool.
func (l *limit) enterTool(name string) (leave func(), err error) {
	if mcptool.Short(name) {
		return func() {}, nil
	}
	return l.leave, l.enter()
}
