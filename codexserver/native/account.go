package native

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Auth is where users sign in with ChatGPT: an OAuth server, which is nowhere
// built in.
type Auth struct {
	// Issuer is its base address: ISSUER/oauth/authorize and ISSUER/oauth/token
	// are asked.
	Issuer string
	// ClientID is how it knows us.
	ClientID string
	// Port is where the browser comes back to on this machine. Default: the
	// first that is free of 1455, 1457 and any.
	Port int
}

var (
	_ engine.Accounts = (*Engine)(nil)
)

// AuthStatus implements [engine.Accounts]. A configured provider that needs no
// OpenAI account says nothing of who is signed in.
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
		e.log.Warn("no user counts as signed in", "error", err)
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

// refreshed returns who is signed in after a refresh, or before it when it fails.
func (e *Engine) refreshed(ctx context.Context, who auth.Credentials) auth.Credentials {
	if err := e.auth.Refresh(ctx); err != nil {
		e.log.Warn("the ChatGPT sign-in cannot be refreshed", "error", err)
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

// LoginChatGPT implements [engine.Accounts]. Without [Options.Auth] it is a
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
		e.log.Warn("no user counts as signed in", "error", err)
	}
	if who.Email == "" {
		return &protocol.UserInfoResult{}, nil
	}
	return &protocol.UserInfoResult{AllegedUserEmail: &who.Email}, nil
}

// userAgent is what the engine calls itself towards model providers.
func (e *Engine) userAgent() string {
	return fmt.Sprintf("codex-mcp/%s (%s; %s)", e.version, runtime.GOOS, runtime.GOARCH)
}
