// Package webaddr reads the addresses of pages of the web, and the list of hosts of the user's
// configuration. It connects to nothing.
//
// An [Address] is written in one way, in visible ASCII, so that a person who reads it sees all
// that is sent. [Hosts] are what the configuration lists. [Public] tells public IP addresses from
// those of this machine and its networks, [Loopback] this machine from others.
package webaddr

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// MaxAddress is the length of the longest [Address] in bytes. A question about it shows it whole.
const MaxAddress = 1000

// Error is why a page cannot be read, for the model.
type Error struct {
	// What is wrong. It may quote the page's server, in visible characters and in part.
	What string
	// Next is what to do about it, "" if there is nothing.
	Next string
}

// Error implements error.
func (e *Error) Error() string { return e.What }

// Address is the address of a page: its scheme is http or https, and it has no user, password
// or fragment. It consists of visible ASCII characters without quotes.
type Address struct {
	scheme string
	host   string     // a name in lower case, or an IP address in its shortest form without brackets
	ip     netip.Addr // of a host that is an IP address
	port   uint16
	rest   string // path and query
}

// Parse reads an address that a model wrote. Without a scheme it is one of https. The
// error is an [*Error].
func Parse(text string) (Address, error) {
	if len(text) > MaxAddress {
		return Address{}, tooLong(len(text))
	}
	text = strings.TrimSpace(text)
	if i := strings.Index(text, "://"); i < 0 || strings.ContainsAny(text[:i], "/?#") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return Address{}, &Error{What: "the address cannot be read", Next: "write it as https://HOST/PATH."}
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return Address{}, &Error{What: fmt.Sprintf("fetch knows no addresses with %s:", u.Scheme[:min(len(u.Scheme), 20)]), Next: "give an address with https."}
	case u.User != nil:
		return Address{}, &Error{What: "the address has a user name or a password", Next: "leave out everything before the @."}
	case u.Hostname() == "":
		return Address{}, &Error{What: "the address names no host", Next: "write the whole address, as https://HOST/PATH."}
	}
	a := Address{scheme: u.Scheme, port: defaultPort(u.Scheme)}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Address{}, &Error{What: "the address has a port that does not exist", Next: "leave out the port."}
		}
		a.port = uint16(n)
	}
	if a.host, a.ip, err = hostOf(u.Hostname(), strings.HasPrefix(u.Host, "[")); err != nil {
		return Address{}, err
	}
	a.rest = visible(u.EscapedPath())
	if a.rest == "" {
		a.rest = "/"
	}
	if u.RawQuery != "" {
		a.rest += "?" + visible(u.RawQuery)
	}
	if n := len(a.String()); n > MaxAddress {
		return Address{}, tooLong(n)
	}
	return a, nil
}

func tooLong(n int) error {
	return &Error{What: fmt.Sprintf("the address has %d characters, and at most %d are allowed", n, MaxAddress), Next: "use a shorter one."}
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// hostOf returns a host in its only form. Other forms of an IP address, such as 127.1 and 0x7f000001,
// which some resolvers understand, are no hosts.
func hostOf(text string, bracketed bool) (host string, ip netip.Addr, err error) {
	if bracketed {
		ip, err := netip.ParseAddr(text)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", ip, &Error{What: "the host is not an IPv6 address without a zone", Next: "use the name of the host."}
		}
		return ip.String(), ip, nil
	}
	host = strings.TrimSuffix(strings.ToLower(text), ".")
	labels := strings.Split(host, ".")
	for _, label := range labels {
		for i := range len(label) {
			switch c := label[i]; {
			case c >= 0x80:
				return "", ip, &Error{What: "the name of the host has characters other than ASCII", Next: "write it in the form that begins with xn--."}
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			default:
				return "", ip, &Error{What: "the name of the host has a character that names do not have", Next: "check the address."}
			}
		}
		if label == "" || len(label) > 63 || len(host) > 253 {
			return "", ip, &Error{What: "the name of the host has an empty part or is too long", Next: "check the address."}
		}
	}
	last := labels[len(labels)-1]
	if '0' <= last[0] && last[0] <= '9' { // no top-level domain begins with a digit
		if ip, err = netip.ParseAddr(host); err != nil {
			return "", ip, &Error{What: "the host is neither a name nor an IPv4 address of four decimal numbers", Next: "use the name of the host."}
		}
	}
	return host, ip, nil
}

// visible escapes every byte of a path or query that is not a visible ASCII character, and quotes.
func visible(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`<>\\^{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// String returns the address in its only form.
func (a Address) String() string { return a.origin() + a.rest }

// Host returns the host: a name in lower case, or an IP address without brackets.
func (a Address) Host() string { return a.host }

// IP returns the host's IP address, the zero value if the host is a name.
func (a Address) IP() netip.Addr { return a.ip }

// Port returns the port.
func (a Address) Port() uint16 { return a.port }

// TLS reports whether the scheme is https.
func (a Address) TLS() bool { return a.scheme == "https" }

// origin returns the address up to its path.
func (a Address) origin() string {
	host := a.host
	if a.ip.Is6() {
		host = "[" + host + "]"
	}
	if a.port != defaultPort(a.scheme) {
		host += ":" + strconv.Itoa(int(a.port))
	}
	return a.scheme + "://" + host
}

// Resolve returns the address that a link or a redirect of the page leads to.
func (a Address) Resolve(link string) (Address, error) {
	if len(link) > MaxAddress {
		return Address{}, tooLong(len(link))
	}
	base, err := url.Parse(a.String())
	if err != nil {
		return Address{}, err
	}
	u, err := base.Parse(strings.TrimSpace(link))
	if err != nil || u.Opaque != "" {
		return Address{}, &Error{What: "the link cannot be read"}
	}
	return Parse(u.String())
}

// Follows reports whether a redirect from a to b stays at its host: its scheme and port may
// change only from http to https, both with their own port.
func (a Address) Follows(b Address) bool {
	upgrade := a.scheme == "http" && a.port == 80 && b.scheme == "https" && b.port == 443
	return a.host == b.host && (upgrade || a.scheme == b.scheme && a.port == b.port)
}

// Nearby reports whether the host can only be on this machine or in its network: a private IP
// address, or a name that cannot be public.
func (a Address) Nearby() bool {
	if a.ip.IsValid() {
		return !Public(a.ip)
	}
	return !strings.Contains(a.host, ".") || strings.HasSuffix(a.host, ".localhost") || strings.HasSuffix(a.host, ".local") || strings.HasSuffix(a.host, ".internal")
}
