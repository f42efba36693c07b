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
	jsonrpc.Handle(m, "userInfo", func(ctx context.Context, _ empty) (*protocol.UserInfoResult, error) {
		info, err := a.UserInfo(ctx)
		if err != nil {
			return nil, failed("failed to read the login", err)
		}
		return info, nil
	})
	handleInOrder(ss, m, &ss.account, "loginApiKey", func(ctx context.Context, p protocol.LoginAPIKeyParams) (empty, error) {
		if err := required("/apiKey", p.APIKey); err != nil {
			return empty{}, err
		}
		if err := a.LoginAPIKey(ctx, p.APIKey); err != nil {
			return empty{}, answerFor("failed to save api key", err)
		}
		return empty{}, nil
	}, func(empty) { ss.authChanged(protocol.AuthAPIKey) })
	handleInOrder(ss, m, &ss.account, "logoutChatGpt", func(ctx context.Context, _ empty) (empty, error) {
		if err := a.Logout(ctx); err != nil {
			return empty{}, failed("logout failed", err)
		}
		return empty{}, nil
	}, func(empty) { ss.authChanged("") })
	ss.addLoginMethods(m, a)
}

func (ss *session) addLoginMethods(m *jsonrpc.Mux, a engine.Accounts) {
	handleInOrder(ss, m, &ss.account, "loginChatGpt", func(ctx context.Context, _ empty) (*protocol.LoginChatGPTResult, error) {
		login, err := a.LoginChatGPT(ctx, func(done protocol.LoginChatGPTComplete) {
			ss.client.Notify("loginChatGptComplete", done)
			if done.Success {
				ss.authChanged(protocol.AuthChatGPT)
			}
		})
		if err != nil {
			return nil, answerFor("failed to start login server", err)
		}
		return login, nil
	}, nil)
	handleInOrder(ss, m, &ss.account, "cancelLoginChatGpt", func(ctx context.Context, p protocol.CancelLoginChatGPTParams) (empty, error) {
		if err := required("/loginId", p.LoginID); err != nil {
			return empty{}, err
		}
		if err := a.CancelLogin(ctx, p.LoginID); err != nil {
			return empty{}, answerFor("login id "+p.LoginID, err)
		}
		return empty{}, nil
	}, nil)
}

func (ss *session) authChanged(mode protocol.AuthMode) {
	ss.client.Notify("authStatusChange", protocol.AuthStatusChange{AuthMethod: mode})
}
