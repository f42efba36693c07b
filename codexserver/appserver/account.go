package appserver

import (
	"cmp"
	"context"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Account is who is signed in.
type Account struct {
	// Method is "apikey", "chatgpt", another word of Codex's, or "" when
	// no one is signed in.
	Method protocol.AuthMode `json:"method"`
	// Email is that of a ChatGPT account.
	Email string `json:"email,omitzero"`
	// Required is whether the configured model provider needs an account.
	Required bool `json:"required"`
}

// account returns who is signed in. The answer holds no token.
func (c *child) account(ctx context.Context) (*Account, error) {
	var r apptypes.AccountReply
	if err := c.control(ctx, apptypes.CallAccountRead, apptypes.AccountParams{}, &r); err != nil {
		return nil, err
	}
	a := &Account{Required: r.RequiresOpenaiAuth}
	if r.Account != nil {
		a.Method, a.Email = protocol.AuthMode(r.Account.Type), r.Account.Email
		if r.Account.Type == apptypes.AccountAPIKey {
			a.Method = protocol.AuthAPIKey
		}
	}
	return a, nil
}

// signedIn returns ErrNotSignedIn for a conversation whose provider lacks credentials. Its
// first turn would otherwise retry for many seconds. The app-server knows only the account
// of its own provider, so a conversation with another provider passes.
func (c *child) signedIn(ctx context.Context, r *threadReply) error {
	a, err := c.account(ctx)
	if err != nil {
		return err
	}
	if a.Method != "" || !a.Required {
		return nil
	}
	if own := c.provider(ctx); r.ModelProvider != "" && r.ModelProvider != own {
		return nil
	}
	return ErrNotSignedIn
}

// provider is the app-server's own model provider.
func (c *child) provider(ctx context.Context) string {
	config, err := c.config(ctx, "")
	if err != nil {
		return builtIn
	}
	return cmp.Or(value[string](config["model_provider"]), builtIn)
}

// builtIn is the provider of an empty configuration.
const builtIn = "openai"

// AuthStatus implements [engine.Accounts]. The result has a token only if p asks for it.
func (e *Engine) AuthStatus(ctx context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	r := &protocol.GetAuthStatusResult{}
	return r, e.control(ctx, callAuthStatus, p, r)
}

// Logout implements [engine.Accounts].
func (e *Engine) Logout(ctx context.Context) error {
	return e.control(ctx, apptypes.CallAccountLogout, nil, nil)
}
