package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// The bounds of one page.
const (
	maxTime      = 30 * time.Second
	maxRedirects = 5
	maxHeader    = 64 << 10
	maxBody      = 1 << 20                 // after decompression
	maxWire      = 2*maxBody + 2*maxHeader // of one connection, as it is sent
)

// Check decides whether a connection may be made. It has the form of [net.Dialer.Control]:
// address is an IP address with a port, after every resolution of a name.
type Check func(network, address string, c syscall.RawConn) error

// Options are the options of a [Client].
type Options struct {
	// Hosts are those that the user has listed.
	Hosts webaddr.Hosts
	// Roots are the trusted authorities. Default: the system's.
	Roots *x509.CertPool
	// Proxy returns the proxy for a request, or nil. It is asked only about listed hosts with
	// https: a proxy connects by itself, so that addresses cannot be checked. Default: none.
	Proxy func(*http.Request) (*url.URL, error)
	// Dial connects, for tests. It must call check with each address before it connects to it.
	// Default: a [net.Dialer].
	Dial func(ctx context.Context, network, address string, check Check) (net.Conn, error)
}

// Client reads pages. It is safe for concurrent use, and keeps no connections.
type Client struct{ options Options }

// New makes a client.
func New(o Options) *Client {
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, network, address string, check Check) (net.Conn, error) {
			return (&net.Dialer{Control: check}).DialContext(ctx, network, address)
		}
	}
	return &Client{o}
}

// Listed reports whether the user has listed the host of an address.
func (c *Client) Listed(a webaddr.Address) bool { return c.options.Hosts.Has(a) }

// Refuses returns why no answer of a user allows an address, as an [*webaddr.Error], or nil. Names are
// resolved only in [Client.Get], because a name can carry data to its servers.
func (c *Client) Refuses(a webaddr.Address) error {
	switch {
	case c.Listed(a):
		return nil
	case a.Nearby():
		return notPublic(a)
	case a.Port() < 1024 && a.Port() != 80 && a.Port() != 443:
		return &webaddr.Error{What: fmt.Sprintf("port %d is not one of the web", a.Port()), Next: "use an address without a port."}
	}
	return nil
}

func notPublic(a webaddr.Address) error {
	return &webaddr.Error{What: a.Host() + " is not on the public web", Next: "use the shell for servers of this machine, or ask the user to list the IP address in fetch.hosts of codex-mcp.toml."}
}

// Page is what was read.
type Page struct {
	// Address is that of the page, after redirects.
	Address webaddr.Address
	// Type is its media type, such as "text/html".
	Type string
	// Text is its content in visible characters, at most 2 MiB. It is as trustworthy as its server.
	Text string
	// Notes are sentences about what Text lacks.
	Notes []string
}

// Get reads a page. The error is an [*webaddr.Error], or the cause of ctx.
func (c *Client) Get(ctx context.Context, a webaddr.Address) (*Page, error) {
	if err := c.Refuses(a); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	first := a
	for range maxRedirects + 1 {
		page, next, err := c.get(limited, a)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, explain(a, err)
		case page != nil:
			return page, nil
		case !a.Follows(next):
			return nil, &webaddr.Error{What: fmt.Sprintf("%s redirects to another place: %s", a, next), Next: "call fetch with that address if you need it."}
		}
		a = next
	}
	return nil, &webaddr.Error{What: fmt.Sprintf("%s redirects more than %d times", first, maxRedirects), Next: "use another address."}
}

// get sends one request, and returns the page or the place of a redirect.
func (c *Client) get(ctx context.Context, a webaddr.Address) (*Page, webaddr.Address, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.String(), nil)
	if err != nil {
		return nil, a, err
	}
	req.Header.Set("User-Agent", "codex-mcp")
	req.Header.Set("Accept", "text/html, text/*, application/json, application/xml;q=0.9")
	transport, err := c.transport(req, a)
	if err != nil {
		return nil, a, err
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, a, err
	}
	defer resp.Body.Close()
	if where := resp.Header.Get("Location"); where != "" && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		next, err := a.Resolve(where)
		if err != nil {
			return nil, a, &webaddr.Error{What: fmt.Sprintf("%s redirects to an address that fetch cannot use", a), Next: "use another address."}
		}
		return nil, next, nil
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, a, &webaddr.Error{What: strings.TrimSpace(fmt.Sprintf("%s answered with status %d %s", a, resp.StatusCode, http.StatusText(resp.StatusCode))), Next: "check the address, or use another page."}
	}
	page, err := read(resp, a)
	return page, a, err
}

// transport returns the transport for one request.
func (c *Client) transport(req *http.Request, a webaddr.Address) (*http.Transport, error) {
	t := &http.Transport{
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
		TLSHandshakeTimeout:    10 * time.Second,
		TLSClientConfig:        &tls.Config{RootCAs: c.options.Roots, MinVersion: tls.VersionTLS12},
	}
	isListed := c.Listed(a)
	check := func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err == nil && (webaddr.Public(to.Addr()) || isListed && a.IP().IsValid() && to.Addr() == a.IP()) {
			return nil
		}
		return notPublic(a)
	}
	if isListed && a.TLS() && c.options.Proxy != nil {
		proxy, err := c.options.Proxy(req)
		if err != nil {
			return nil, &webaddr.Error{What: "the proxy of the environment cannot be used"}
		}
		if proxy != nil {
			t.Proxy = http.ProxyURL(proxy)
			check = func(string, string, syscall.RawConn) error { return nil }
		}
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := c.options.Dial(ctx, network, address, check)
		if err != nil {
			return nil, err
		}
		return &bounded{Conn: conn, left: maxWire}, nil
	}
	return t, nil
}

// bounded is a connection that ends after a number of bytes.
type bounded struct {
	net.Conn
	left int
}

var errTooMuch = errors.New("its server sends too much")

// Read implements [net.Conn].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// read reads the page of a response.
func read(resp *http.Response, a webaddr.Address) (*Page, error) {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && kind == "" && resp.Header.Get("Content-Type") == "" {
		kind = "text/plain"
	}
	if !readable(kind) {
		size := "of unknown size"
		if resp.ContentLength >= 0 {
			size = fmt.Sprintf("of %d bytes", resp.ContentLength)
		}
		return nil, &webaddr.Error{What: fmt.Sprintf("%s is not text: it is %q, %s", a, clip(kind), size), Next: "look for a page of the same as HTML or text."}
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, &webaddr.Error{What: fmt.Sprintf("%s is compressed in a way that was not asked for: %q", a, clip(encoding)), Next: "use another page."}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil && len(body) <= maxBody {
		return nil, err
	}
	page := &Page{Address: a, Type: clip(kind)}
	if len(body) > maxBody {
		body = body[:maxBody]
		page.Notes = append(page.Notes, fmt.Sprintf("Only the first %d bytes of the page were read.", maxBody))
	}
	text, whole := string(body), true
	if strings.ContainsRune(text, 0) {
		return nil, &webaddr.Error{What: fmt.Sprintf("%s is not UTF-8 text", a), Next: "look for a page of the same as HTML or text."}
	}
	if valid := strings.ToValidUTF8(text, "\uFFFD"); valid != text {
		text = valid
		page.Notes = append(page.Notes, fmt.Sprintf("Characters that are not UTF-8 were replaced (the page names the charset %q).", clip(params["charset"])))
	}
	if kind == "text/html" || kind == "application/xhtml+xml" {
		text, whole = htmlText(text, a, kind != "text/html")
	}
	if !whole {
		page.Notes = append(page.Notes, "Only the beginning of the page is here.")
	}
	var dropped int
	if page.Text, dropped = clean(text); dropped > 0 {
		page.Notes = append(page.Notes, fmt.Sprintf("%d invisible characters were left out.", dropped))
	}
	return page, nil
}

// readable reports whether a media type is one of text.
func readable(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/yaml", "application/toml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "application/") && (strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml"))
}

// explain returns an error as an [*webaddr.Error]. Most texts of net/http and crypto/x509 quote
// the server, so it has its own.
func explain(a webaddr.Address, err error) error {
	var own *webaddr.Error
	var dns *net.DNSError
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	what, next := "its server broke off, or breaks the rules of HTTP", "try it once more, or use another page."
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &dns) && dns.IsNotFound:
		return &webaddr.Error{What: fmt.Sprintf("the host %s was not found", a.Host()), Next: "check its name."}
	case errors.Is(err, context.DeadlineExceeded):
		what = fmt.Sprintf("it did not arrive within %v", maxTime)
	case errors.Is(err, errTooMuch):
		what, next = errTooMuch.Error(), "use another page."
	case errors.As(err, &unknown):
		what, next = "its certificate is of an unknown authority", "use another page."
	case errors.As(err, &certificate):
		what, next = "its certificate is not valid for it", "use another page."
	case errors.As(err, &op):
		what = op.Error()
	}
	return &webaddr.Error{What: fmt.Sprintf("%s cannot be read: %s", a, what), Next: next}
}

// clip returns the beginning of what a server or a model wrote, in visible characters.
func clip(text string) string {
	const most = 200
	text, _ = clean(strings.ToValidUTF8(text[:min(len(text), most)], ""))
	return strings.Join(strings.Fields(text), " ")
}
