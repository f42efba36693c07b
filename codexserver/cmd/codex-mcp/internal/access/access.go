package access

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"golang.org/x/time/rate"
)

// Options change how an [Access] works. Nil is valid.
type Options struct {
	// BehindProxy says that requests come from a proxy, which adds the address of the
	// client as the last one of X-Forwarded-For.
	BehindProxy bool
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Access knows the users of one server. It is safe for concurrent use.
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
	name     string
	subject  string
	scopes   []streamable.Scope // those of the configuration, never nil
	requests *rate.Limiter
}

// New returns an Access for the principals of the settings. It fails without any.
func New(settings config.HTTP, o *Options) (*Access, error) {
	if len(settings.Principals) == 0 {
		return nil, errors.New("http.principals: missing")
	}
	if o == nil {
		o = &Options{}
	}
	a := &Access{proxy: o.BehindProxy, log: o.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Principals)) {
		p := settings.Principals[name]
		who := &principal{
			name: name, subject: p.Subject, scopes: streamable.ParseScopes(strings.Join(p.Scopes, " ")),
			requests: rate.NewLimiter(rate.Limit(p.Limits.Requests), p.Limits.Requests),
		}
		a.principals = append(a.principals, who)
		if err := a.tokens.add(who, p.Tokens); err != nil {
			return nil, err
		}
	}
	if settings.OAuth.Issuer != "" {
		a.oauth = &verifier{oauth: settings.OAuth, keys: newKeySet(settings.OAuth.Issuer, a.log), subjects: map[string]*principal{}}
		for _, who := range a.principals {
			a.oauth.subjects[who.subject] = who
		}
	}
	return a, nil
}

var (
	errMissing = errors.New("no bearer token")
	errUnknown = errors.New("an unknown token")
)

// Identify returns whose request it is and what its token allows. Its errors are
// [*streamable.Refusal]s. It fits [streamable.Options].Authenticate.
func (a *Access) Identify(r *http.Request) (streamable.Principal, error) {
	token, ok := bearer(r.Header)
	if !ok {
		return streamable.Principal{}, &streamable.Refusal{Err: errMissing}
	}
	who, scopes, err := a.verify(r, token)
	if err != nil {
		return streamable.Principal{}, err
	}
	// A reservation says when there is room. It is cancelled, so that refused
	// requests do not delay later ones.
	if place := who.requests.Reserve(); !place.OK() || place.Delay() > 0 {
		wait := time.Second
		if place.OK() {
			wait = place.Delay()
			place.Cancel()
		}
		return streamable.Principal{}, &streamable.Refusal{
			Status: http.StatusTooManyRequests, RetryAfter: wait, Words: "too many requests a second", Err: errors.New("too many requests of " + who.name),
		}
	}
	return streamable.Principal{Name: who.name, Scopes: scopes}, nil
}

// verify returns whose token it is.
func (a *Access) verify(r *http.Request, token string) (*principal, []streamable.Scope, error) {
	// A static token costs one hash. It is checked before the failures are, so that no
	// user is locked out by another one's guesses.
	if who := a.tokens.find(token); who != nil {
		return who, who.scopes, nil
	}
	remote := a.remote(r)
	if wait := a.failures.wait(remote); wait > 0 {
		return nil, nil, &streamable.Refusal{
			Status: http.StatusTooManyRequests, RetryAfter: wait, Words: "too many requests without a valid token", Err: errors.New("too many failures"),
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

// bearer returns the token of the one header Authorization.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// remote returns the address that failures are counted by.
func (a *Access) remote(r *http.Request) string {
	if a.proxy {
		// The proxy appends: the client wrote what comes before.
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
