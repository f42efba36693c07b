package methods

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func (ss *session) addAccountMethods(m *jsonrpc.Mux, a engine.Accounts) {
	jsonrpc.Handle(m, "getAuthStatus", func(ctx context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
		status, err := a.AuthStatus(ctx, p)
		if err != nil {
			return nil, failed("failed to read the login", err)
		}
		return status, nil
	})
	m.Handle("logoutChatGpt", ss.client.Limited(jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
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
	})))
}
