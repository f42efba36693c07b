// Package webaddr reads the addresses of pages that only the user reaches, and tells this machine from others.
package webaddr

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Loopback reports whether a host, without brackets, is localhost or a loopback address. It does not
// resolve names, since an attacker may control the answer.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

var errNoOrigin = errors.New("want https://HOST, with :PORT if it is not 443, and nothing after it; HOST is a name " +
	"in ASCII or an address")

// ParseOrigin returns the origin of pages that only the user reaches, in the form that browsers send:
// https://HOST or https://HOST:PORT. With http the host must be this machine, as of a port that ssh
// forwards, because others could read and change the pages on their way.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errNoOrigin
	}
	host, usual := strings.ToLower(u.Hostname()), map[string]string{"https": "443", "http": "80"}[u.Scheme]
	if !isHost(host, strings.HasPrefix(u.Host, "[")) {
		return "", errNoOrigin
	}
	origin := u.Scheme + "://" + host
	if strings.Contains(host, ":") {
		origin = u.Scheme + "://[" + host + "]"
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port > 0 && u.Port() != usual {
		origin += ":" + u.Port()
	}
	switch {
	case usual == "" || !strings.EqualFold(origin, strings.TrimSuffix(text, "/")):
		return "", errNoOrigin
	case u.Scheme == "http" && !Loopback(host):
		return "", errors.New("want https, because others could read and change the page on its way; only localhost " +
			"may have http")
	}
	return origin, nil
}

// isHost reports whether a host is a name or an IP address in its only form. Some resolvers understand
// other forms of an address, such as 127.1.
func isHost(host string, bracketed bool) bool {
	ip, err := netip.ParseAddr(host)
	if bracketed || err == nil {
		return err == nil && ip.Is6() == bracketed && ip.Zone() == "" && ip.String() == host
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(host) <= 253 && (last[0] < '0' || last[0] > '9') // no top-level domain begins with a digit
}
