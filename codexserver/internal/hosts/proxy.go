package hosts

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// Proxy connects commands to hosts.
type Proxy struct {
	// Resolve returns the addresses of a host.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address, in a time of its own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Upstream returns the proxy to use for a request, or nil.
	Upstream func(*http.Request) (*url.URL, error)
}

// New returns the proxy with the system's resolver, without search lists, and network, or with the proxy that the
// environment of this process names.
func New() *Proxy {
	return &Proxy{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
		},
		Dial:     (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		Upstream: http.ProxyFromEnvironment,
	}
}

const (
	connectTime = 30 * time.Second // for all addresses of a host
	maxAddrs    = 8                // that are tried
)

// connect connects to port 443 of a host. Refusal says that it may not be reached.
func (p *Proxy) connect(ctx context.Context, host string) (up net.Conn, refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	switch proxy, err := p.Upstream(&http.Request{URL: &url.URL{Scheme: "https", Host: host}}); {
	case err != nil:
		return nil, "", errors.New("the server's own proxy is not set well") // the error may have its password
	case proxy != nil:
		up, err = p.through(ctx, proxy, host)
		return up, "", err
	}
	addrs, err := p.Resolve(ctx, host)
	if err != nil {
		return nil, "", errors.New("its name does not resolve")
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, "", errors.New("this machine's own addresses are not known")
	}
	for i, a := range addrs {
		if addrs[i] = a.Unmap(); !public(addrs[i], own) {
			return nil, "it leads to an address of this machine, of a private network or of another special kind", nil
		}
	}
	err = errors.New("it has no address")
	for _, a := range addrs[:min(len(addrs), maxAddrs)] {
		if up, err = p.Dial(ctx, "tcp", netip.AddrPortFrom(a, 443).String()); err == nil {
			return up, "", nil
		}
	}
	return nil, "", err
}

// through connects to a host through another proxy.
func (p *Proxy) through(ctx context.Context, proxy *url.URL, host string) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	if port == "" {
		return nil, errors.New("the server's own proxy is none of HTTP")
	}
	up, err := p.Dial(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port)))
	if err != nil {
		return nil, errors.New("the server's own proxy cannot be reached")
	}
	if proxy.Scheme == "https" {
		up = tls.Client(up, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	defer context.AfterFunc(ctx, func() { _ = up.SetDeadline(time.Unix(1, 0)) })()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: host + ":443"}, Host: host + ":443",
		Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
		request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"]}
	}
	r := bufio.NewReaderSize(up, maxHead)
	_ = request.Write(up) // an error meets the answer, too
	switch answer, err := http.ReadResponse(r, request); {
	case err != nil || r.Buffered() > 0:
		return nil, errors.Join(errors.New("the server's own proxy does not answer as one"), up.Close())
	case answer.StatusCode != http.StatusOK:
		return nil, errors.Join(fmt.Errorf("the server's own proxy answered %d", answer.StatusCode), up.Close())
	}
	return up, nil
}

// special are networks that no name may lead to: of this machine and its neighbours, of providers' networks, for
// documents and tests, for many receivers, and those that lead into IPv4 by tunnels. The last of IPv4 is a metadata
// service.
var special = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"168.63.129.16/32",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
}

const (
	global = "2000::/3"
	nat64  = "64:ff9b::/96" // has an address of IPv4 in its last bytes
)

// public reports whether an address is one of the internet, and none of those that this machine has.
func public(a netip.Addr, own []net.Addr) bool {
	in := func(network string) bool { return netip.MustParsePrefix(network).Contains(a) }
	if in(nat64) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.IsValid() && (a.Is4() || in(global)) && !slices.ContainsFunc(special, in) &&
		!slices.ContainsFunc(own, func(o net.Addr) bool {
			mine, err := netip.ParsePrefix(o.String())
			return err != nil || mine.Addr().Unmap() == a
		})
}
