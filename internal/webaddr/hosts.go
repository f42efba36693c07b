package webaddr

import (
	"fmt"
	"strings"
)

// Hosts are those that the user's configuration lists. The zero value lists none.
type Hosts []listed

// listed is one entry: a scheme, a host and a port, or all hosts below a name.
type listed struct {
	Address
	below bool
}

// ParseHosts reads a list of hosts. "docs.example.com" is one host, with https at its own port;
// "*.example.com" is every host below example.com, without itself. A port may follow, and
// "http://" may precede. An IP address is listed as itself. The error names the entry.
func ParseHosts(list []string) (Hosts, error) {
	var hosts Hosts
	for _, text := range list {
		scheme, host, has := strings.Cut(text, "://")
		if !has {
			scheme, host = "https", text
		}
		name, below := strings.CutPrefix(host, "*.")
		a, err := Parse(scheme + "://" + name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		switch {
		case strings.ContainsAny(host, "/?# \t"):
			return nil, fmt.Errorf("%q: want a host without a path", text)
		case below && (a.ip.IsValid() || !strings.Contains(a.host, ".")):
			return nil, fmt.Errorf("%q: want a name with a dot, such as *.example.com", text)
		case !a.ip.IsValid() && a.Nearby():
			return nil, fmt.Errorf("%q names this machine or its network: list the address itself, such as http://127.0.0.1:8080", text)
		}
		hosts = append(hosts, listed{a, below})
	}
	return hosts, nil
}

// Has reports whether the list has the host of an address, with its scheme and port.
func (h Hosts) Has(a Address) bool {
	for _, l := range h {
		if l.scheme != a.scheme || l.port != a.port {
			continue
		}
		if !l.below && l.host == a.host || l.below && !a.ip.IsValid() && strings.HasSuffix(a.host, "."+l.host) {
			return true
		}
	}
	return false
}
