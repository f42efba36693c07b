package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The optional interfaces that the engine has.
var (
	_ engine.Describer = (*Engine)(nil)
	_ engine.Resumer   = (*Engine)(nil)
	_ engine.Library   = (*Engine)(nil)
	_ engine.Accounts  = (*Engine)(nil)
	_ engine.Searcher  = (*Engine)(nil)

	_ engine.ModelLister = (*Engine)(nil)
	_ engine.Resolver    = (*conversation)(nil)
	_ engine.Stopper     = (*conversation)(nil)
)

// control calls a method that is answered soon, in an app-server that is started if none runs.
func (e *Engine) control(ctx context.Context, method string, params, result any) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	return c.control(ctx, method, params, result)
}

// SearchFiles implements [engine.Searcher].
func (e *Engine) SearchFiles(
	ctx context.Context, p protocol.FuzzyFileSearchParams,
) (*protocol.FuzzyFileSearchResult, error) {
	var r struct {
		Files []struct {
			protocol.FuzzyFile
			MatchType string `json:"match_type"`
		} `json:"files"`
	}
	err := e.control(ctx, apptypes.CallFuzzyFileSearch, p, &r)
	if err != nil && ctx.Err() == nil { // Codex tells nothing of a search that was ended
		return nil, err
	}
	found := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}
	for _, f := range r.Files {
		// newer versions find folders too
		if f.MatchType == "" || f.MatchType == apptypes.FuzzyFileSearchMatchTypeFile {
			found.Files = append(found.Files, f.FuzzyFile)
		}
	}
	return found, nil
}

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

// signedIn reports whether the provider has what it needs.
func (a *Account) signedIn() bool { return a.Method != "" || !a.Required }

// account returns who is signed in. The answer holds no token.
func (c *child) account(ctx context.Context) (*Account, error) {
	var r apptypes.AccountReply
	if err := c.control(ctx, apptypes.CallAccountRead, struct{}{}, &r); err != nil {
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
func (c *child) signedIn(ctx context.Context, r *apptypes.ThreadReply) error {
	a, err := c.account(ctx)
	if err != nil {
		return err
	}
	if a.signedIn() {
		return nil
	}
	own := builtIn
	if file, err := c.configuration(ctx, ""); err == nil {
		own = cmp.Or(get[string](file.keys, providerKey), builtIn)
	}
	if r.ModelProvider != "" && r.ModelProvider != own {
		return nil
	}
	return ErrNotSignedIn
}

// AuthStatus implements [engine.Accounts]. The result has a token only if p asks for it.
func (e *Engine) AuthStatus(
	ctx context.Context, p protocol.GetAuthStatusParams,
) (*protocol.GetAuthStatusResult, error) {
	r := &protocol.GetAuthStatusResult{}
	return r, e.control(ctx, "getAuthStatus", p, r)
}

// Logout implements [engine.Accounts].
func (e *Engine) Logout(ctx context.Context) error {
	return e.control(ctx, apptypes.CallAccountLogout, nil, nil)
}

// List implements [engine.Library]. Codex lists only conversations with a turn.
func (e *Engine) List(
	ctx context.Context, p protocol.ListConversationsParams,
) (*protocol.ListConversationsResult, error) {
	limit := 25
	if p.PageSize != nil {
		limit = *p.PageSize
	}
	list := &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{}}
	if limit <= 0 {
		return list, nil
	}
	var r apptypes.ThreadsReply
	err := e.control(ctx, apptypes.CallThreadList, apptypes.ThreadsParams{Limit: int64(limit), Cursor: p.Cursor}, &r)
	if errors.Is(err, errCursor) {
		err = engine.ErrCursor
	}
	if err != nil {
		return nil, err
	}
	if r.NextCursor != "" {
		list.NextCursor = &r.NextCursor
	}
	for _, t := range r.Data {
		holder := ""
		if t.Status.Type == apptypes.ThreadStatusIdle || t.Status.Type == apptypes.ThreadStatusActive {
			holder = "this server"
		}
		list.Items = append(list.Items, protocol.ConversationSummary{
			ConversationID: t.ID, Path: t.Path, Preview: t.Preview, Title: t.Name, Cwd: t.Cwd,
			Timestamp: new(time.Unix(t.CreatedAt, 0).UTC().Format(time.RFC3339)),
			Origin:    t.Originator, Holder: holder, News: e.newsOf(t.ID),
		})
	}
	return list, nil
}

// maxModels is how many models a list has.
const maxModels = 200

// Models implements [engine.ModelLister] with the models that Codex lists. The default is
// the configured model, if there is one, which is the first.
func (e *Engine) Models(ctx context.Context) (*protocol.ModelList, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	file, err := c.configuration(ctx, "")
	if err != nil {
		return nil, err
	}
	list := &protocol.ModelList{}
	if limits := limitsOf(c.limits.Load()); limits != nil { // asking anew could take seconds
		if words := limits.Words(); words != "" {
			list.Notes = append(list.Notes, "limits of the account: "+words)
		}
	}
	own := get[string](file.keys, "model")
	if own != "" {
		list.Models = []protocol.Model{{Name: own,
			DefaultEffort: get[protocol.ReasoningEffort](file.keys, "model_reasoning_effort"), IsDefault: true}}
	}
	for cursor := ""; ; {
		var r apptypes.ModelsReply
		if err := c.control(ctx, apptypes.CallModelList, apptypes.ModelsParams{Cursor: cursor}, &r); err != nil {
			return nil, err
		}
		for _, m := range r.Data {
			out := protocol.Model{
				Name: m.Model, Description: m.Description,
				DefaultEffort: protocol.ReasoningEffort(m.DefaultReasoningEffort), IsDefault: m.IsDefault &&
					own == "",
			}
			for _, e := range m.SupportedReasoningEfforts {
				out.Efforts = append(out.Efforts, protocol.ReasoningEffort(e.ReasoningEffort))
			}
			if own != "" && m.Model == own {
				out.DefaultEffort, out.IsDefault = cmp.Or(list.Models[0].DefaultEffort, out.DefaultEffort), true
				list.Models[0] = out
				continue
			}
			if list.Models = append(list.Models, out); len(list.Models) == maxModels {
				list.Notes = append(list.Notes, "there are more models")
				return list, nil
			}
		}
		if r.NextCursor == "" || len(r.Data) == 0 {
			return list, nil
		}
		cursor = r.NextCursor
	}
}

const (
	quotaLimit   = 10 * time.Second // of a request for the account's limits, for which Codex asks a server
	versionLimit = 10 * time.Second
)

// RateLimits returns how much of the account's limits is used. Asking costs no tokens. It
// returns nil if the account has no limits, and an error for an account without ChatGPT.
func (e *Engine) RateLimits(ctx context.Context) (*protocol.RateLimits, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	var r apptypes.LimitsReply
	if err := c.call(ctx, quotaLimit, apptypes.CallAccountRateLimitsRead, nil, &r); err != nil {
		return nil, err
	}
	return limitsOf(&r.RateLimits), nil
}

// Report describes the installed Codex before it is used.
type Report struct {
	// Path is the program; "" if none was found.
	Path string `json:"path,omitzero"`
	// Version is a version such as "0.169.0". Needed is the oldest that works.
	Version string `json:"version,omitzero"`
	Needed  string `json:"needed"`
	// Home is Codex's folder.
	Home string `json:"codexHome,omitzero"`
	// Account is nil if the app-server could not be asked.
	Account *Account `json:"account,omitzero"`
	// Model, Provider, ApprovalPolicy and Sandbox are as configured; "" if not.
	Model          string `json:"model,omitzero"`
	Provider       string `json:"provider,omitzero"`
	ApprovalPolicy string `json:"approvalPolicy,omitzero"`
	Sandbox        string `json:"sandbox,omitzero"`
	// Unconfined says why its sandbox runs no command, and what helps, "" if it runs one; [Engine.Confines] tries that.
	Unconfined string `json:"unconfined,omitzero"`
	// Err is why this Codex cannot be used: a [*NotFoundError], a [*TooOldError],
	// [ErrNotSignedIn], or an error of the app-server. It is nil if Codex is usable.
	Err error `json:"-"`
	// Problem is Err's text.
	Problem string `json:"problem,omitzero"`
}

// Usable reports whether the engine can start conversations.
func (r *Report) Usable() bool { return r.Err == nil }

// Check starts Codex, which takes about half a second, and reports what it finds. Codex
// keeps running for the first conversation.
func (e *Engine) Check(ctx context.Context) *Report {
	r := &Report{Needed: appclient.Oldest().String()}
	if r.Err = e.check(ctx, r); r.Err != nil {
		r.Problem = r.Err.Error()
	}
	return r
}

func (e *Engine) check(ctx context.Context, r *Report) error {
	var err error
	if r.Path, err = first(find(e.programs, e.options.Path)); err != nil {
		return err
	}
	c, err := e.child(ctx)
	if err != nil {
		if v, e := e.programVersion(ctx, r.Path); e == nil {
			r.Version = v.String()
		}
		return err
	}
	r.Version, r.Home = c.version.String(), c.home
	r.Path = cmp.Or(c.path, r.Path)
	file, err := c.configuration(ctx, "")
	var broken *engine.ConfigError
	switch {
	case errors.As(err, &broken): // the app-server runs, but cannot start a thread
		return fmt.Errorf("codex cannot use its configuration: %s",
			strings.Join(strings.Fields(broken.Err.Error()), " "))
	case err == nil:
		r.Model, r.Provider = get[string](file.keys, "model"), get[string](file.keys, providerKey)
		r.ApprovalPolicy, r.Sandbox = get[string](file.keys, policyKey), get[string](file.keys, modeKey)
		r.Sandbox = cmp.Or(r.Sandbox, string(profileModes[get[string](file.keys, profileKey)]))
	}
	r.ApprovalPolicy = cmp.Or(string(c.policy), r.ApprovalPolicy)
	if r.Account, err = c.account(ctx); err != nil {
		return err
	}
	if !r.Account.signedIn() {
		return ErrNotSignedIn
	}
	return nil
}
