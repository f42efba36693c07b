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

// Proxy connects commands to hosts. The zero value uses the system's resolver and network, and the proxy that the
// environment of this process names.
type Proxy struct {
	// Resolve returns the addresses of a host. Default: those that the system's resolver finds, without search lists.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address. Default: that of a [net.Dialer].
	Dial dial
	// Upstream returns the proxy to use for a request, or nil. Default: [http.ProxyFromEnvironment].
	Upstream func(*http.Request) (*url.URL, error)
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

const (
	connectTime = 30 * time.Second // for all addresses of a host
	addrTime    = 10 * time.Second // for one
	maxAddrs    = 8                // that are tried
)

// connect connects to port 443 of a host. Refusal says that it may not be reached.
func (p *Proxy) connect(ctx context.Context, host string) (up net.Conn, refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	dial, resolve, upstream := p.Dial, p.Resolve, p.Upstream
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
		}
	}
	if upstream == nil {
		upstream = http.ProxyFromEnvironment
	}
	switch proxy, err := upstream(&http.Request{URL: &url.URL{Scheme: "https", Host: host}}); {
	case err != nil:
		return nil, "", errors.New("the server's own proxy is not set well") // the error may have its password
	case proxy != nil:
		up, err = through(ctx, dial, proxy, host)
		return up, "", err
	}
	addrs, err := resolve(ctx, host)
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
		if up, err = one(ctx, dial, a); err == nil {
			return up, "", nil
		}
	}
	return nil, "", err
}

// one dials an address, of which another may be better.
func one(ctx context.Context, dial dial, a netip.Addr) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, addrTime)
	defer cancel()
	return dial(ctx, "tcp", netip.AddrPortFrom(a, 443).String())
}

// through connects to a host through another proxy.
func through(ctx context.Context, dial dial, proxy *url.URL, host string) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	if port == "" {
		return nil, errors.New("the server's own proxy is none of HTTP")
	}
	up, err := dial(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port)))
	if err != nil {
		return nil, errors.New("the server's own proxy cannot be reached")
	}
	if proxy.Scheme == "https" {
		up = tls.Client(up, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	defer context.AfterFunc(ctx, func() { _ = up.SetDeadline(time.Unix(1, 0)) })()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: host + ":443"}, Host: host + ":443", Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
		request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"]}
	}
	r := bufio.NewReaderSize(up, maxHead)
	err = request.Write(up)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(r, request)
	}
	switch {
	case err != nil:
		err = errors.New("the server's own proxy does not answer")
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("the server's own proxy answered %d", answer.StatusCode)
	case r.Buffered() > 0:
		err = errors.New("the server's own proxy said more than its answer")
	default:
		return up, nil
	}
	return nil, errors.Join(err, up.Close())
}

// special are networks that no name may lead to: of this machine and its neighbours, of providers' networks, for
// documents and tests, for many receivers, and those that lead into IPv4 by tunnels. The last of IPv4 is a metadata
// service.
var special = func() (all []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}()

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // has an address of IPv4 in its last bytes
)

// public reports whether an address is one of the internet, and none of those that this machine has.
func public(a netip.Addr, own []net.Addr) bool {
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !a.IsValid() || a.Is6() && !global.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) }) && !slices.ContainsFunc(own, func(o net.Addr) bool {
		mine, err := netip.ParsePrefix(o.String())
		return err != nil || mine.Addr().Unmap() == a
	})
}
