package streamable

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

var errTwice = errors.New("the header Authorization comes twice")

// Guard decides which requests may pass, and answers the others. A [Handler] has one of
// its own; a program that hands requests on to another process asks one first. It is safe
// for concurrent use.
//
// A program that hands a request on removes its Authorization and its Origin: the guard
// has answered for both, with headers that may not come twice.
type Guard struct{ o Options }

// NewGuard returns a guard. It reads the fields of o up to Origins, and Logger. It
// fails without [Options].Authenticate.
func NewGuard(o *Options) (*Guard, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Guard{options}, nil
}

// Admit returns whose request it is, and whether the request may pass. If it may not, or
// was a preflight, Admit has answered it.
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

// challenge is the WWW-Authenticate of an answer.
func (g *Guard) challenge(code, scopes string) string {
	return parameters(g.o.Challenge, "error", code, "scope", scopes, "resource_metadata", g.o.Metadata)
}

// CheckOrigin refuses a request that a web page could have sent by DNS rebinding, and
// reports whether the request may pass. It answers a preflight. What everyone may read
// needs no other check.
func (g *Guard) CheckOrigin(w http.ResponseWriter, r *http.Request) bool {
	if !g.hostAllowed(r.Host) {
		refuse(w, http.StatusForbidden, "this server is not known by that Host")
		return false
	}
	origin := r.Header.Values("Origin")
	if len(origin) > 1 || len(origin) == 1 && !g.originAllowed(origin[0]) {
		refuse(w, http.StatusForbidden, "pages of this Origin may not use this server")
		return false
	}
	return len(g.o.Origins) == 0 || !share(w, r)
}

// hostAllowed reports whether a Host header names this server.
func (g *Guard) hostAllowed(host string) bool {
	name := hostname(host)
	if len(g.o.Hosts) == 0 {
		return loopback(name)
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
		u.Path == "" && u.RawQuery == "" && u.Fragment == "" && loopback(u.Hostname())
}

// hostname is a Host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// loopback reports whether a name means this machine, whatever a resolver says.
func loopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
