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

// guard refuses a request that a web page could have sent by DNS rebinding, and one
// without a principal. It reports whether the request may go on.
func (h *Handler) guard(w http.ResponseWriter, r *http.Request) (Principal, bool) {
	if !h.hostAllowed(r.Host) {
		refuse(w, http.StatusForbidden, "this server is not known by that Host")
		return Principal{}, false
	}
	if origin := r.Header.Values("Origin"); len(origin) > 1 || len(origin) == 1 && !h.originAllowed(origin[0]) {
		refuse(w, http.StatusForbidden, "pages of this Origin may not use this server")
		return Principal{}, false
	}
	var who Principal
	err := errTwice
	if len(r.Header.Values("Authorization")) <= 1 {
		who, err = h.o.Authenticate(r)
	}
	if err != nil || who.Name == "" {
		h.o.Logger.Debug("request refused", "remote", r.RemoteAddr, "error", err)
		var why *Refusal
		if !errors.As(err, &why) {
			why = &Refusal{}
		}
		scopes := ""
		if h.o.Metadata != "" {
			scopes = FormatScopes(Scopes())
		}
		why.answer(w, parameters(h.o.Challenge, "resource_metadata", h.o.Metadata, "scope", scopes, "error", why.Code))
		return Principal{}, false
	}
	return who, true
}

// hostAllowed reports whether a Host header names this server.
func (h *Handler) hostAllowed(host string) bool {
	name := hostname(host)
	if len(h.o.Hosts) == 0 {
		return loopback(name)
	}
	return slices.ContainsFunc(h.o.Hosts, func(served string) bool {
		return strings.EqualFold(served, host) || strings.EqualFold(served, name)
	})
}

// originAllowed reports whether pages of an origin may send requests.
func (h *Handler) originAllowed(origin string) bool {
	if len(h.o.Origins) > 0 {
		return slices.Contains(h.o.Origins, origin)
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
