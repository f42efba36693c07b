package access

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

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
	principals []*principal // sorted by name
	tokens     tokens
	oauth      *verifier // nil without an authorization server
	failures   failures
	proxy      bool
	log        *slog.Logger
}

// principal is one user.
type principal struct {
	name    string
	subject string
	scopes  []mcphttp.Scope // from the configuration, never nil
}

// New returns an Access for the principals of settings. It fails if there are none.
func New(of settings.HTTP, o *Options) (*Access, error) {
	if len(of.Principals) == 0 {
		return nil, errors.New("http.principals: missing; add a table for each user")
	}
	if o == nil {
		o = &Options{}
	}
	a := &Access{proxy: o.BehindProxy, log: o.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	for _, name := range slices.Sorted(maps.Keys(of.Principals)) {
		p := of.Principals[name]
		who := &principal{name: name, subject: p.Subject, scopes: mcphttp.ParseScopes(strings.Join(p.Scopes, " "))}
		a.principals = append(a.principals, who)
		if err := a.tokens.add(who, p.Tokens); err != nil {
			return nil, err
		}
	}
	if of.OAuth.Issuer != "" {
		a.oauth = &verifier{oauth: of.OAuth, keys: newKeySet(of.OAuth.Issuer, a.log), subjects: map[string]*principal{}}
		for _, who := range a.principals {
			a.oauth.subjects[who.subject] = who
		}
	}
	return a, nil
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
	if who := a.tokens.find(token); who != nil {
		return who, who.scopes, nil
	}
	remote := a.remote(r)
	if wait := a.failures.wait(remote); wait > 0 {
		return nil, nil, &mcphttp.Refusal{
			Status: http.StatusTooManyRequests, RetryAfter: wait, Words: "too many requests without a valid token", Err: errors.New("too many refused tokens from this address"),
		}
	}
	err := invalid(errUnknown)
	if a.oauth != nil && looksSigned(token) {
		who, scopes, refused := a.oauth.verify(r.Context(), token)
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
