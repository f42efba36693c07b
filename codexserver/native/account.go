package native

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var _ engine.Accounts = (*Engine)(nil)

// AuthStatus implements [engine.Accounts]. When the configured provider needs no OpenAI
// account, the result does not say who is signed in.
func (e *Engine) AuthStatus(ctx context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return nil, err
	}
	required := cfg.Provider().RequiresOpenAIAuth
	r := &protocol.GetAuthStatusResult{RequiresOpenAIAuth: &required}
	if !required {
		return r, nil
	}
	who, err := e.auth.Current()
	if err != nil {
		e.options.Logger.Warn("the sign-in cannot be read; no user counts as signed in", "error", err)
		return r, nil
	}
	if who.Stale || who.Method == auth.MethodChatGPT && isTrue(p.RefreshToken) {
		who = e.refreshed(ctx, who)
	}
	r.AuthMethod = protocol.AuthMode(who.Method)
	if isTrue(p.IncludeToken) {
		r.AuthToken = who.Token
	}
	return r, nil
}

// refreshed refreshes the sign-in and returns the new credentials, or who when that fails.
func (e *Engine) refreshed(ctx context.Context, who auth.Credentials) auth.Credentials {
	if err := e.auth.Refresh(ctx); err != nil {
		e.options.Logger.Warn("the ChatGPT sign-in cannot be refreshed", "error", err)
		return who
	}
	if now, err := e.auth.Current(); err == nil {
		return now
	}
	return who
}

func isTrue(b *bool) bool { return b != nil && *b }

// LoginAPIKey implements [engine.Accounts].
func (e *Engine) LoginAPIKey(_ context.Context, key string) error { return e.auth.SaveAPIKey(key) }

// LoginChatGPT implements [engine.Accounts]. Without [Options.Auth] it fails with a
// [*engine.RefusedError] that says where to sign in.
func (e *Engine) LoginChatGPT(_ context.Context, done func(protocol.LoginChatGPTComplete)) (*protocol.LoginChatGPTResult, error) {
	id, address, err := e.auth.Begin(func(id string, err error) {
		c := protocol.LoginChatGPTComplete{LoginID: id, Success: err == nil}
		if err != nil {
			c.Error = err.Error()
		}
		done(c)
	})
	if errors.Is(err, auth.ErrNotConfigured) {
		return nil, &engine.RefusedError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	return &protocol.LoginChatGPTResult{LoginID: id, AuthURL: address}, nil
}

// CancelLogin implements [engine.Accounts].
func (e *Engine) CancelLogin(_ context.Context, loginID string) error {
	if !e.auth.Cancel(loginID) {
		return fmt.Errorf("login %s: %w", loginID, engine.ErrNotFound)
	}
	return nil
}

// Logout implements [engine.Accounts].
func (e *Engine) Logout(context.Context) error { return e.auth.Remove() }

// UserInfo implements [engine.Accounts].
func (e *Engine) UserInfo(context.Context) (*protocol.UserInfoResult, error) {
	who, err := e.auth.Current()
	if err != nil {
		e.options.Logger.Warn("the sign-in cannot be read; no user counts as signed in", "error", err)
	}
	if who.Email == "" {
		return &protocol.UserInfoResult{}, nil
	}
	return &protocol.UserInfoResult{AllegedUserEmail: &who.Email}, nil
}

// userAgent is the User-Agent of requests to model providers.
func (e *Engine) userAgent() string {
	return fmt.Sprintf("codex-mcp/%s (%s; %s)", e.options.Version, runtime.GOOS, runtime.GOARCH)
}
