package access

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Access identifies the users of one server. It is safe for concurrent use.
type Access struct {
	oauth settings.OAuth
	keys  *keySet // of the authorization server; nil without one
	known atomic.Pointer[known]
}

// known are the users, with the scopes from the configuration. It never changes.
type known struct {
	tokens   tokens
	subjects map[string]mcphttp.Principal
}

// New returns an Access for the principals of settings. It fails if there are none. log receives what is wrong with the
// authorization server.
func New(of settings.HTTP, log *slog.Logger) (*Access, error) {
	a := &Access{oauth: of.OAuth}
	if of.OAuth.Issuer != "" {
		a.keys = newKeySet(of.OAuth.Issuer, log)
	}
	apply, err := a.Reload(of.Principals)
	if err != nil {
		return nil, err
	}
	apply()
	return a, nil
}

// Reload returns a function that replaces the principals. It fails for those that New refuses. The
// authorization server stays.
func (a *Access) Reload(principals map[string]settings.Principal) (apply func(), err error) {
	if len(principals) == 0 {
		return nil, errors.New("http.principals: missing; add a table for each user")
	}
	k := &known{subjects: map[string]mcphttp.Principal{}}
	for _, name := range slices.Sorted(maps.Keys(principals)) {
		p := principals[name]
		who := mcphttp.Principal{Name: name, Scopes: mcphttp.ParseScopes(strings.Join(p.Scopes, " "))}
		if err := k.tokens.add(who, p.Tokens); err != nil {
			return nil, err
		}
		k.subjects[p.Subject] = who
	}
	return func() { a.known.Store(k) }, nil
}

// Still reports whether a request with these headers, which was admitted for a principal, would be
// admitted for it now, with the same scopes.
func (a *Access) Still(ctx context.Context, h http.Header, before mcphttp.Principal) bool {
	now, err := a.identify(ctx, h)
	return err == nil && now.Name == before.Name && slices.Equal(now.Scopes, before.Scopes)
}

// Identify returns the principal that sent a request, with the scopes of its token. Every
// error is a [*mcphttp.Refusal]. Use it as [mcphttp.Options].Authenticate.
func (a *Access) Identify(r *http.Request) (mcphttp.Principal, error) {
	return a.identify(r.Context(), r.Header)
}

// identify returns the owner of the token in the headers of a request, and the scopes that the token allows.
func (a *Access) identify(ctx context.Context, h http.Header) (mcphttp.Principal, error) {
	token, ok := bearer(h)
	if !ok {
		return mcphttp.Principal{}, &mcphttp.Refusal{Err: errors.New("no bearer token")}
	}
	k := a.known.Load()
	if who, known := k.tokens.find(token); known {
		return who, nil
	}
	if a.keys == nil || !looksSigned(token) {
		return mcphttp.Principal{}, invalid(errors.New("unknown token"))
	}
	return a.verify(ctx, token, k.subjects)
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
