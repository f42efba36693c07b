package native

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/auth"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var _ engine.Accounts = (*Engine)(nil)

// AuthStatus implements [engine.Accounts]. When the configured provider needs no OpenAI
// account, the result does not say who is signed in. Tokens are as Codex left them: only Codex
// renews them.
func (e *Engine) AuthStatus(_ context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return nil, err
	}
	required := cfg.Provider().RequiresOpenAIAuth
	r := &protocol.GetAuthStatusResult{RequiresOpenAIAuth: &required}
	if !required {
		return r, nil
	}
	who, err := auth.Read(e.options.CodexHome)
	if err != nil {
		e.options.Logger.Warn("the sign-in cannot be read; no user counts as signed in", "error", err)
		return r, nil
	}
	r.AuthMethod = protocol.AuthMode(who.Method)
	if p.IncludeToken != nil && *p.IncludeToken {
		r.AuthToken = who.Token
	}
	return r, nil
}

// Logout implements [engine.Accounts].
func (e *Engine) Logout(context.Context) error { return auth.Remove(e.options.CodexHome) }
