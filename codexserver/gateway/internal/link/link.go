package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Head says for whom a request is.
type Head struct {
	// Node is the id of the server.
	Node string
	// Epoch is that of the user's lease, as the front knows it. 0 asks the node to take the lease if it is free.
	Epoch uint64
	// User is who sent the request, with the scopes that the front has found. Without any the request may do nothing.
	User mcphttp.Principal
}

// headHeader has the [Head] of a request, and of an answer the word refused if the request was not carried out. Both sides
// set it on what they send, so that neither clients nor workers can.
const (
	headHeader = "Codex-Mcp-Link"
	refused    = "refused"
)

// String returns the text of the header.
func (h Head) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s", h.Node, h.Epoch, h.User.Name,
		mcphttp.FormatScopes(h.User.Scopes)))
}

// parse reads the header of a request.
func parse(header http.Header) (h Head, err error) {
	values := header[headHeader]
	if len(values) != 1 {
		return h, errors.New("the request does not come from a front")
	}
	words := strings.Fields(values[0])
	if len(words) < 3 {
		return h, errors.New("the request is invalid")
	}
	// never nil, which would be all
	h.Node, h.User.Name, h.User.Scopes = words[0], words[2], mcphttp.ParseScopes(strings.Join(words[3:], " "))
	h.Epoch, err = strconv.ParseUint(words[1], 10, 64)
	return h, err
}

var (
	// ErrAbsent means that the server cannot be reached. The request was not carried out.
	ErrAbsent = errors.New("the node cannot be reached")
	// ErrRefused means that the server did not carry out the request. The error that wraps it
	// has the reason.
	ErrRefused = errors.New("the node refused the request")
)

const (
	// maxHead bounds the headers of a request and of an answer, in bytes.
	maxHead = 256 << 10
	// maxReason bounds the reason of a refusal, in bytes.
	maxReason = 256
	// maxStreams bounds the requests of a connection. A client makes more connections when it needs them.
	maxStreams = 1000
	// window bounds what a side keeps of a request whose reader is slow, in bytes.
	window = 512 << 10
	// idleTimeout is how long a connection lasts that nothing uses.
	idleTimeout = time.Minute
)

// A side that hears nothing asks the other one, which is lost if it does not answer.
const (
	askAfter  = 2 * time.Second
	lostAfter = 3 * time.Second
)

// http2 returns how both sides use HTTP/2.
func http2() (*http.Protocols, *http.HTTP2Config) {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	return p, &http.HTTP2Config{
		// slow readers leave room for others
		MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: window,
		MaxReceiveBufferPerConnection: maxStreams * window,
		SendPingTimeout:               askAfter, PingTimeout: lostAfter, WriteByteTimeout: askAfter + lostAfter,
	}
}

// Client sends requests to servers. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	log       *log.Logger // of the proxy
}

// goAway is in the error of a request that a server has not begun because it ends. HTTP/2 promises that, and package http has no
// other word for it.
const goAway = "cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY]"

// NewClient returns a client with these certificates. The caller must close it.
func NewClient(certificates Certificates, log *slog.Logger) *Client {
	protocols, config := http2()
	return &Client{&http.Transport{
		Protocols: protocols, HTTP2: config, DialTLSContext: certificates.dial, DisableCompression: true,
		IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxHead,
	}, slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// Close closes the connections. All requests must have ended.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends a request to the server at an address, and passes the answer on to w. An error means that nothing was written
// to w. An answer that breaks off later panics with [http.ErrAbortHandler].
func (c *Client) Do(w http.ResponseWriter, r *http.Request, address string, head Head) (err error) {
	if address == "" {
		return fmt.Errorf("%w: its address is not known", ErrAbsent)
	}
	proxy := httputil.ReverseProxy{
		Transport: c.transport, ErrorLog: c.log, ModifyResponse: accept,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host, r.Out.GetBody = "https", address, "localhost", nil
			for _, name := range []string{"Authorization", "Cookie", "Expect"} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set(headHeader, head.String())
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			if err = failed; strings.Contains(err.Error(), goAway) {
				err = fmt.Errorf("%w: %w", ErrRefused, err)
			}
		},
	}
	proxy.ServeHTTP(w, r)
	return err
}

// accept fails for an answer which says that the request was not carried out.
func accept(r *http.Response) error {
	if r.Header.Get(headHeader) == refused {
		reason, _ := io.ReadAll(io.LimitReader(r.Body, maxReason)) // only for the log
		return fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	r.Header.Del(headHeader)
	return nil
}

// dial connects to a server, and checks its certificate.
func (c Certificates) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	config, err := c.config()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	return conn, nil
}
