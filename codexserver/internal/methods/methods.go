// Package methods has the JSON-RPC methods of Codex's server of September 2025: conversations
// and their messages, the sign-in and the search for files.
// They run commands and choose the sandbox without a question, so only clients of the user who
// started the server have them. A server that does not register them speaks only MCP.
package methods

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// Server has what the methods of one server share. All fields but the last one must be set.
type Server struct {
	Engine engine.Engine
	Tools  *tools.Table
	// Approvals says how clients are asked, and how answers are read.
	Approvals elicit.Options
	// Folder is the working folder of a conversation whose caller names none. Default: the
	// process's.
	Folder string
}

// session is one client that uses the methods.
type session struct {
	client    *mcp.Connection
	server    *Server
	listening sync.Map // by the id of a subscription, what ends it
}

// Register adds the methods of a client to m, each group only if the engine has its interface.
func (s *Server) Register(m *jsonrpc.Mux, client *mcp.Connection) {
	ss := &session{client: client, server: s}
	ss.addConversationMethods(m)
	if a, ok := s.Engine.(engine.Accounts); ok {
		ss.addAccountMethods(m, a)
	}
	ss.addWorkspaceMethods(m, s.Engine)
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
	jsonrpc.Handle(m, method, func(ctx context.Context, p P) (result R, err error) {
		leave, err := ss.client.Session().Enter()
		if err != nil {
			return result, err
		}
		defer leave()
		return f(ctx, p)
	})
}

type empty = struct{}

// required refuses an empty member.
func required(path jsontext.Pointer, value string) error {
	if value == "" {
		return mcp.Invalid(path, "missing")
	}
	return nil
}

// oneOf refuses a word that is not one of words. "" means a missing member.
func oneOf[S ~string](path jsontext.Pointer, got S, words []S) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return mcp.Invalid(path, "%q must be one of %q", string(got), words)
}

// refused returns the error for a request that is wrong.
func refused(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)
}

// failed returns the error for a correct request that failed.
func failed(doing string, err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s: %v", doing, err)
}

func (ss *session) addAccountMethods(m *jsonrpc.Mux, a engine.Accounts) {
	jsonrpc.Handle(m, "getAuthStatus", func(ctx context.Context,
		p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
		status, err := a.AuthStatus(ctx, p)
		if err != nil {
			return nil, failed("failed to read the login", err)
		}
		return status, nil
	})
	m.Handle("logoutChatGpt", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		leave, err := ss.client.Session().Enter()
		if err != nil {
			return nil, err
		}
		defer leave()
		var p empty
		if err := r.Bind(&p); err != nil {
			return nil, err
		}
		if err := a.Logout(ctx); err != nil {
			return nil, failed("logout failed", err)
		}
		if err := r.Responder().Reply(empty{}, nil); err != nil {
			ss.client.Session().Log().Debug("logout", "error", err)
			return nil, nil
		}
		ss.client.Notify("authStatusChange", empty{})
		return nil, nil
	}))
}

func (ss *session) addWorkspaceMethods(m *jsonrpc.Mux, e engine.Engine) {
	jsonrpc.Handle(m, "getUserAgent", func(context.Context, empty) (*protocol.GetUserAgentResult, error) {
		return &protocol.GetUserAgentResult{UserAgent: ss.client.UserAgent()}, nil
	})
	if w, ok := e.(engine.Searcher); ok {
		var running sync.Map // the functions that cancel searches, by cancellation token
		handleLong(ss, m, "fuzzyFileSearch",
			func(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
				if p.Roots == nil {
					return nil, mcp.Invalid("/roots", "missing")
				}
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				if token := p.CancellationToken; token != "" {
					// A new search cancels the running one with the same token.
					if before, is := running.Swap(token, &cancel); is {
						(*before.(*context.CancelFunc))()
					}
					defer running.CompareAndDelete(token, &cancel)
				}
				found, err := w.SearchFiles(ctx, p)
				var no *engine.RefusedError
				if errors.As(err, &no) || errors.Is(err, engine.ErrNotFound) {
					return nil, refused("fuzzy file search: %v", err)
				}
				if err != nil {
					return nil, failed("fuzzy file search", err)
				}
				return found, nil
			})
	}
}
