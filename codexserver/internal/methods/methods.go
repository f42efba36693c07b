package methods

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Server has what the methods of one server share. All fields but the last two must be set.
type Server struct {
	Engine engine.Engine
	Tools  *tools.Table
	// Approvals says how clients are asked, and how answers are read.
	Approvals elicit.Options
	// Folder is the working folder of a conversation whose caller names none. Default: the
	// process's.
	Folder string
	// FullAccess says what happens to a caller that asks for more than the configuration gives.
	FullAccess setting.FullAccess
}

// session is one client that uses the methods.
type session struct {
	client *mcp.Connection
	server *Server
}

// Register adds the methods of a client to m, as its default: each group only if the engine has its
// interface, and none before the first is called, since most clients call none.
func (s *Server) Register(m *jsonrpc.Mux, client *mcp.Connection) {
	all := sync.OnceValue(func() *jsonrpc.Mux { return s.methods(client) })
	m.Default(jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		return all().ServeRPC(ctx, r)
	}))
}

// methods returns the methods of a client.
func (s *Server) methods(client *mcp.Connection) *jsonrpc.Mux {
	m, ss := &jsonrpc.Mux{}, &session{client: client, server: s}
	ss.addConversationMethods(m)
	ss.addMessageMethods(m)
	if a, ok := s.Engine.(engine.Accounts); ok {
		ss.addAccountMethods(m, a)
	}
	ss.addWorkspaceMethods(m, s.Engine)
	return m
}

// Inline returns the methods to handle on the read loop: those whose order matters, and those
// that must be answered at any time. They return at once.
func Inline() []string {
	return []string{
		"addConversationListener", "removeConversationListener",
		"sendUserMessage", "interruptConversation",
	}
}

// handleLong adds a method that may take long. It is refused while too many requests that may
// take long are handled.
func handleLong[P, R any](ss *session, m *jsonrpc.Mux, method string, f func(context.Context, P) (R, error)) {
	own := &jsonrpc.Mux{}
	jsonrpc.Handle(own, method, f)
	m.Handle(method, ss.client.Limited(own))
}
