package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
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

// UserInfo implements [engine.Accounts].
func (e *Engine) UserInfo(ctx context.Context) (*protocol.UserInfoResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	a, err := c.account(ctx)
	if err != nil {
		return nil, err
	}
	r := &protocol.UserInfoResult{}
	if a.Email != "" {
		r.AllegedUserEmail = &a.Email
	}
	return r, nil
}

// LoginAPIKey implements [engine.Accounts]; Codex keeps the key.
func (e *Engine) LoginAPIKey(ctx context.Context, key string) error {
	return e.control(ctx, apptypes.CallAccountLoginStart, apptypes.LoginParams{Type: apptypes.LoginAccountParamsAPIKey, APIKey: key}, nil)
}

// LoginChatGPT implements [engine.Accounts]: Codex opens the local callback.
func (e *Engine) LoginChatGPT(ctx context.Context, done func(protocol.LoginChatGPTComplete)) (*protocol.LoginChatGPTResult, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r apptypes.LoginReply
	if err := c.control(ctx, apptypes.CallAccountLoginStart, apptypes.LoginParams{Type: apptypes.LoginAccountParamsChatgpt}, &r); err != nil {
		return nil, err
	}
	if r.LoginID == "" || r.AuthURL == "" {
		return nil, errors.New("codex answered the ChatGPT login without an id or a URL")
	}
	ended := c.watchLogin(r.LoginID)
	if !e.background(func() {
		select {
		case result := <-ended:
			done(result)
		case <-c.end.gone:
			done(protocol.LoginChatGPTComplete{LoginID: r.LoginID, Error: c.obituary().Error()})
		}
	}) {
		return nil, errClosed
	}
	return &protocol.LoginChatGPTResult{LoginID: r.LoginID, AuthURL: r.AuthURL}, nil
}

// watchLogin returns a channel that receives the end of a login. The end may come before
// the caller knows the login's id.
func (c *child) watchLogin(id string) chan protocol.LoginChatGPTComplete {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.logins[id]
	if ch == nil {
		ch = make(chan protocol.LoginChatGPTComplete, 1)
		c.logins[id] = ch
	}
	return ch
}

// loginEnded handles account/login/completed.
func (c *child) loginEnded(end *apptypes.LoginEnd) {
	r := protocol.LoginChatGPTComplete{LoginID: end.LoginID, Success: end.Success, Error: end.Error}
	if r.LoginID == "" {
		return // a login by key; the answer to its request reported the end
	}
	select {
	case c.watchLogin(r.LoginID) <- r:
	default: // reported twice
	}
}

// CancelLogin implements [engine.Accounts].
func (e *Engine) CancelLogin(ctx context.Context, id string) error {
	var r apptypes.LoginCancelled
	if err := e.control(ctx, apptypes.CallAccountLoginCancel, apptypes.LoginCancel{LoginID: id}, &r); err != nil {
		return err
	}
	if r.Status != apptypes.CancelLoginAccountStatusCanceled {
		return fmt.Errorf("login %s: %w", id, engine.ErrNotFound)
	}
	return nil
}

// Logout implements [engine.Accounts].
func (e *Engine) Logout(ctx context.Context) error {
	return e.control(ctx, apptypes.CallAccountLogout, nil, nil)
}
