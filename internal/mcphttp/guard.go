package mcphttp

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

var errTwice = errors.New("the header Authorization occurs twice")

// Guard decides which requests may pass, and answers the others. A [Handler] has its own.
// A program that forwards requests to another process asks a guard first. It is safe for
// concurrent use.
//
// Such a program must remove Authorization and Origin before it forwards a request: the
// guard has checked both and may have set response headers that must not occur twice.
type Guard struct{ o Options }

// NewGuard returns a guard. It uses the fields of o up to Origins, and Logger. It fails
// without [Options].Authenticate.
func NewGuard(o *Options) (*Guard, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Guard{options}, nil
}

// Admit returns the principal of a request, and reports whether the request may pass. If
// not, Admit has answered it, as it answers a preflight.
func (g *Guard) Admit(w http.ResponseWriter, r *http.Request) (Principal, bool) {
	if !g.CheckOrigin(w, r) {
		return Principal{}, false
	}
	var who Principal
	err := errTwice
	if len(r.Header.Values("Authorization")) <= 1 {
		who, err = g.o.Authenticate(r)
	}
	if err != nil || who.Name == "" {
		g.o.Logger.Debug("request refused", "remote", r.RemoteAddr, "error", err)
		var why *Refusal
		if !errors.As(err, &why) {
			why = &Refusal{}
		}
		scopes := ""
		if g.o.Metadata != "" {
			scopes = FormatScopes(Scopes())
		}
		why.answer(w, g.challenge(why.Code, scopes))
		return Principal{}, false
	}
	return who, true
}

// challenge returns the value of WWW-Authenticate, without the parameters that are empty.
func (g *Guard) challenge(code, scopes string) string {
	value, separator := g.o.Challenge, " "
	if strings.Contains(value, " ") {
		separator = ", "
	}
	for _, p := range [][2]string{{"error", code}, {"scope", scopes}, {"resource_metadata", g.o.Metadata}} {
		if p[1] != "" {
			value += separator + p[0] + `="` + p[1] + `"`
			separator = ", "
		}
	}
	return value
}

// CheckOrigin refuses a request that a web page could have sent by DNS rebinding. It reports
// whether the request may pass, and answers a preflight. Public content needs no other
// check.
func (g *Guard) CheckOrigin(w http.ResponseWriter, r *http.Request) bool {
	if !g.hostAllowed(r.Host) {
		refuse(w, http.StatusForbidden, "the Host is not a name of this server")
		return false
	}
	origin := r.Header.Values("Origin")
	if len(origin) > 1 || len(origin) == 1 && !g.originAllowed(origin[0]) {
		refuse(w, http.StatusForbidden, "this Origin is not allowed")
		return false
	}
	return len(g.o.Origins) == 0 || !share(w, r)
}

// hostAllowed reports whether a Host header names this server.
func (g *Guard) hostAllowed(host string) bool {
	name := hostname(host)
	if len(g.o.Hosts) == 0 {
		return webaddr.Loopback(name)
	}
	return slices.ContainsFunc(g.o.Hosts, func(served string) bool {
		return strings.EqualFold(served, host) || strings.EqualFold(served, name)
	})
}

// originAllowed reports whether pages of an origin may send requests.
func (g *Guard) originAllowed(origin string) bool {
	if len(g.o.Origins) > 0 {
		return slices.Contains(g.o.Origins, origin)
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil &&
		u.Path == "" && u.RawQuery == "" && u.Fragment == "" && webaddr.Loopback(u.Hostname())
}

// hostname returns a Host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
