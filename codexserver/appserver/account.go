package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Account says who is signed in.
type Account struct {
	// Method is "apikey", "chatgpt", another word of Codex's, or "" when
	// nobody is signed in.
	Method string
	// Email is that of a ChatGPT account.
	Email string
	// Required is whether the configured model provider needs an account.
	Required bool
}

// accountReply answers account/read.
type accountReply struct {
	Account *struct {
		Type  string `json:"type"`
		Email string `json:"email"`
	} `json:"account"`
	RequiresOpenaiAuth bool `json:"requiresOpenaiAuth"`
}

// Account tells who is signed in. No token is asked for.
func (e *Engine) Account(ctx context.Context) (*Account, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	return c.account(ctx)
}

func (c *child) account(ctx context.Context) (*Account, error) {
	var r accountReply
	if err := c.control(ctx, "account/read", struct{}{}, &r); err != nil {
		return nil, err
	}
	a := &Account{Required: r.RequiresOpenaiAuth}
	if r.Account != nil {
		a.Method, a.Email = r.Account.Type, r.Account.Email
		if a.Method == "apiKey" {
			a.Method = "apikey"
		}
	}
	return a, nil
}

// signedIn refuses a conversation whose first turn would try for many seconds
// to reach a provider without credentials. What the app-server tells is about
// its own provider; a conversation may have another.
func (e *Engine) signedIn(ctx context.Context, c *child, r *threadReply) error {
	a, err := c.account(ctx)
	if err != nil {
		return err
	}
	if a.Method == "" && a.Required && (r.ModelProvider == "" || r.ModelProvider == c.provider(ctx)) {
		return ErrNotSignedIn
	}
	return nil
}

// provider is the app-server's own model provider.
func (c *child) provider(ctx context.Context) string {
	config, err := c.config(ctx)
	if err != nil {
		return openAI
	}
	var name string
	if json.Unmarshal(config["model_provider"], &name) != nil || name == "" {
		return openAI
	}
	return name
}

const openAI = "openai"

// LoginAPIKey signs in with a key of the provider, which Codex keeps.
func (e *Engine) LoginAPIKey(ctx context.Context, key string) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	return c.control(ctx, "account/login/start", map[string]string{"type": "apiKey", "apiKey": key}, nil)
}

// Login is a ChatGPT login that has begun.
type Login struct {
	// ID is for CancelLogin, and comes with the account event at its end.
	ID string `json:"loginId"`
	// URL is where the user signs in.
	URL string `json:"authUrl"`
}

// LoginChatGPT begins a login in the user's browser. How it ends is told to
// OnAccount.
func (e *Engine) LoginChatGPT(ctx context.Context) (*Login, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	l := &Login{}
	if err := c.control(ctx, "account/login/start", map[string]string{"type": "chatgpt"}, l); err != nil {
		return nil, err
	}
	if l.ID == "" || l.URL == "" {
		return nil, errors.New("codex began no ChatGPT login")
	}
	return l, nil
}

// ErrNoLogin says that no login by that id is under way.
var ErrNoLogin = errors.New("no such login")

// CancelLogin ends a login that has begun.
func (e *Engine) CancelLogin(ctx context.Context, id string) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	var r struct {
		Status string `json:"status"`
	}
	if err := c.control(ctx, "account/login/cancel", map[string]string{"loginId": id}, &r); err != nil {
		return err
	}
	if r.Status != "canceled" {
		return fmt.Errorf("%w: %s", ErrNoLogin, id)
	}
	return nil
}

// Logout forgets the credentials.
func (e *Engine) Logout(ctx context.Context) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	return c.control(ctx, "account/logout", nil, nil)
}

// AccountEvent is news about the account: a login's end where LoginID or Error
// is set or Success true, else another method of signing in, "" for none.
type AccountEvent struct {
	Ended   bool // a login has ended
	LoginID string
	Success bool
	Error   string
	Method  string
}

// OnAccount has f told of every [AccountEvent] from now on, in order; f must
// not block. There is one such function.
func (e *Engine) OnAccount(f func(AccountEvent)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch = f
}

// accountNews reads account/login/completed and account/updated.
func (e *Engine) accountNews(method string, raw []byte) {
	e.mu.Lock()
	f := e.watch
	e.mu.Unlock()
	if f == nil {
		return
	}
	var p struct {
		LoginID  *string `json:"loginId"`
		Success  bool    `json:"success"`
		Error    *string `json:"error"`
		AuthMode *string `json:"authMode"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	ev := AccountEvent{Ended: method == "account/login/completed", Success: p.Success}
	for to, from := range map[*string]*string{&ev.LoginID: p.LoginID, &ev.Error: p.Error, &ev.Method: p.AuthMode} {
		if from != nil {
			*to = *from
		}
	}
	f(ev)
}
