package access

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Options configure an [Access]. Nil is valid.
type Options struct {
	// BehindProxy means that requests come from a proxy, which appends the address of
	// the client to X-Forwarded-For.
	BehindProxy bool
	// Logger receives warnings for the operator. Default: nothing is logged.
	Logger *slog.Logger
}

// Access identifies the users of one server. It is safe for concurrent use.
type Access struct {
	known    atomic.Pointer[known]
	failures failures
	proxy    bool
	log      *slog.Logger
}

// known are the users and their credentials. It never changes.
type known struct {
	tokens tokens
	oauth  *verifier // nil without an authorization server
}

// principal is one user.
type principal struct {
	name   string
	scopes []mcphttp.Scope // from the configuration, never nil
}

// New returns an Access for the principals of settings. It fails if there are none.
func New(of settings.HTTP, o *Options) (*Access, error) {
	if o == nil {
		o = &Options{}
	}
	a := &Access{proxy: o.BehindProxy, log: o.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	var keys *keySet
	if of.OAuth.Issuer != "" {
		keys = newKeySet(of.OAuth.Issuer, a.log)
	}
	k, err := newKnown(of.Principals, of.OAuth, keys)
	if err != nil {
		return nil, err
	}
	a.known.Store(k)
	return a, nil
}

// newKnown returns principals with their credentials. keys are those of the authorization server, or nil.
func newKnown(principals map[string]settings.Principal, oauth settings.OAuth, keys *keySet) (*known, error) {
	if len(principals) == 0 {
		return nil, errors.New("http.principals: missing; add a table for each user")
	}
	k := &known{}
	if keys != nil {
		k.oauth = &verifier{oauth: oauth, keys: keys, subjects: map[string]*principal{}}
	}
	for _, name := range slices.Sorted(maps.Keys(principals)) {
		p := principals[name]
		who := &principal{name: name, scopes: mcphttp.ParseScopes(strings.Join(p.Scopes, " "))}
		if err := k.tokens.add(who, p.Tokens); err != nil {
			return nil, err
		}
		if k.oauth != nil {
			k.oauth.subjects[p.Subject] = who
		}
	}
	return k, nil
}

// Reload returns a function that replaces the principals. It fails for those that New refuses. The
// authorization server stays.
func (a *Access) Reload(principals map[string]settings.Principal) (apply func(), err error) {
	var oauth settings.OAuth
	var keys *keySet
	if v := a.known.Load().oauth; v != nil {
		oauth, keys = v.oauth, v.keys
	}
	k, err := newKnown(principals, oauth, keys)
	return func() { a.known.Store(k) }, err
}

// Still reports whether a request with these headers, which was admitted for a principal, would be
// admitted for it now, with the same scopes. It counts no failure.
func (a *Access) Still(ctx context.Context, h http.Header, before mcphttp.Principal) bool {
	token, ok := bearer(h)
	if !ok {
		return false
	}
	k := a.known.Load()
	if who := k.tokens.find(token); who != nil {
		return who.name == before.Name && slices.Equal(who.scopes, before.Scopes)
	}
	if k.oauth == nil || !looksSigned(token) {
		return false
	}
	who, scopes, err := k.oauth.verify(ctx, token)
	return err == nil && who.name == before.Name && slices.Equal(scopes, before.Scopes)
}

var (
	errMissing = errors.New("no bearer token")
	errUnknown = errors.New("unknown token")
)

// Identify returns the principal that sent a request, with the scopes of its token. Every
// error is a [*mcphttp.Refusal]. Use it as [mcphttp.Options].Authenticate.
func (a *Access) Identify(r *http.Request) (mcphttp.Principal, error) {
	token, ok := bearer(r.Header)
	if !ok {
		return mcphttp.Principal{}, &mcphttp.Refusal{Err: errMissing}
	}
	who, scopes, err := a.verify(r, token)
	if err != nil {
		return mcphttp.Principal{}, err
	}
	return mcphttp.Principal{Name: who.name, Scopes: scopes}, nil
}

// verify returns the owner of a token and the scopes that the token allows.
func (a *Access) verify(r *http.Request, token string) (*principal, []mcphttp.Scope, error) {
	// Checking a static token costs one hash. It is checked before the failures are
	// counted, so that one client's guesses do not lock out a user at the same address.
	k := a.known.Load()
	if who := k.tokens.find(token); who != nil {
		return who, who.scopes, nil
	}
	remote := a.remote(r)
	if wait := a.failures.wait(remote); wait > 0 {
		return nil, nil, &mcphttp.Refusal{
			Status: http.StatusTooManyRequests, RetryAfter: wait, Words: "too many requests without a valid token", Err: errors.New("too many refused tokens from this address"),
		}
	}
	err := invalid(errUnknown)
	if k.oauth != nil && looksSigned(token) {
		who, scopes, refused := k.oauth.verify(r.Context(), token)
		if refused == nil {
			return who, scopes, nil
		}
		err = refused
	}
	if !unavailable(err) {
		a.failures.count(remote)
	}
	return nil, nil, err
}

// bearer returns the token of the header Authorization, which must come exactly once.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// remote returns the address that a request's failure is counted for.
func (a *Access) remote(r *http.Request) string {
	if a.proxy {
		// The proxy appends the last address. The client may have written the others.
		values := r.Header.Values("X-Forwarded-For")
		if len(values) > 0 {
			all := strings.Split(values[len(values)-1], ",")
			return strings.TrimSpace(all[len(all)-1])
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
