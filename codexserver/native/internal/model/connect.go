package model

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

const (
	// firstConnection is how long a connection may take to a provider that has not answered yet.
	firstConnection = 2500 * time.Millisecond
	// soon is how soon such an attempt must have failed to be worth another one.
	soon = 300 * time.Millisecond
)

// ConnectError reports a request without an answer.
type ConnectError struct {
	// Proxy is the host of the proxy that should connect to it, or "".
	Proxy string
	Err   error

	at *url.URL // whose query may have a key
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// Error implements error. It has the cause and, if that is known, what to do about it.
func (e *ConnectError) Error() string {
	variable := strings.ToUpper(cmp.Or(e.at.Scheme, "https")) + "_PROXY"
	var authority x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var unknown *net.DNSError
	var proxy *proxyError
	refused := isRefused(e.Err)
	switch {
	case errors.As(e.Err, &authority):
		return fmt.Sprintf("the certificate of %s has an unknown authority, perhaps of a company's proxy: set "+
			"CODEX_CA_CERTIFICATE or SSL_CERT_FILE to a file with that authority's certificate", e.at.Host)
	case errors.As(e.Err, &certificate):
		return fmt.Sprintf("the certificate of %s does not count: %v: correct base_url, or the clock of this machine",
			e.at.Host, certificate.Err)
	case errors.Is(e.Err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s answers without TLS: its base_url begins with http://", e.at.Host)
	case errors.As(e.Err, &proxy) && proxy.status == http.StatusProxyAuthRequired:
		return fmt.Sprintf("the proxy %s wants a log-in (%v): put a name and a password into %s, as in "+
			"http://NAME:PASSWORD@%[1]s", e.Proxy, proxy, variable)
	case errors.As(e.Err, &proxy):
		return fmt.Sprintf("the proxy %s does not connect to %s (%v): correct %s or base_url", e.Proxy, e.at.Host,
			proxy, variable)
	case e.byProxy():
		return fmt.Sprintf("the proxy %s does not answer (%s): correct or unset %s", e.Proxy, innermost(e.Err),
			variable)
	case errors.As(e.Err, &unknown):
		return fmt.Sprintf("the name %s cannot be resolved: there is no network, or a proxy is needed (set %s), or "+
			"base_url is wrong", unknown.Name, variable)
	case refused && e.here():
		return fmt.Sprintf("no model server listens at %s: start it, or set the base_url of the provider to its "+
			"address", shown(e.at))
	case refused:
		return fmt.Sprintf("nothing listens at %s: start the model server there, or correct base_url", shown(e.at))
	case errors.Is(e.Err, syscall.ENETUNREACH), errors.Is(e.Err, syscall.EHOSTUNREACH), e.unconnected():
		return fmt.Sprintf("%s cannot be reached (%s): there is no network, or a proxy is needed (set %s), or "+
			"base_url is wrong", e.at.Host, innermost(e.Err), variable)
	case e.Proxy != "":
		return fmt.Sprintf("no answer of %s comes through the proxy %s (%s): correct %s or base_url", e.at.Host,
			e.Proxy, innermost(e.Err), variable)
	}
	return fmt.Sprintf("error sending request for url (%s): %v", shown(e.at), e.Err)
}

// byProxy reports whether the proxy could not be reached.
func (e *ConnectError) byProxy() bool {
	op, _ := errors.AsType[*net.OpError](e.Err)
	return e.Proxy != "" && (e.unconnected() || op != nil &&
		slices.Contains([]string{"proxyconnect", "socks connect"}, op.Op))
}

// unconnected reports whether the time for a connection was over.
func (e *ConnectError) unconnected() bool {
	_, ok := errors.AsType[noConnection](e.Err)
	return ok
}

// noConnection says that there was no connection in a time.
type noConnection string

func (e noConnection) Error() string { return string(e) }

// here reports whether the provider is on this machine.
func (e *ConnectError) here() bool { return webaddr.Loopback(e.at.Hostname()) }

// lasting reports whether another attempt ends in the same way until somebody does something.
func (e *ConnectError) lasting() bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](e.Err)
	_, proxy := errors.AsType[*proxyError](e.Err)
	return certificate || proxy || errors.Is(e.Err, http.ErrSchemeMismatch) || isRefused(e.Err) && e.here() &&
		!e.byProxy()
}

// isRefused reports whether nothing listens at an address.
func isRefused(err error) bool {
	const windows = syscall.Errno(10061) // WSAECONNREFUSED, where ECONNREFUSED is an invention of package syscall
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, windows)
}

// innermost returns the words of the cause alone.
func innermost(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}

// connectErr returns the error for a request without an answer, or with a redirect.
func (c *Client) connectErr(r *http.Request, err error) error {
	if away, ok := errors.AsType[redirectError](err); ok {
		return away
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	proxy := ""
	if t, ok := c.HTTP.Transport.(*http.Transport); ok && t.Proxy != nil {
		at, wrong := t.Proxy(r)
		switch {
		// its text may have a password
		case wrong != nil, at == nil && !webaddr.Loopback(r.URL.Hostname()) &&
			c.unusable(strings.ToUpper(r.URL.Scheme)+"_PROXY"):
			err = fmt.Errorf("%s_PROXY is no address of a proxy: correct or unset it", strings.ToUpper(r.URL.Scheme))
		case at != nil:
			proxy = at.Host
		}
	}
	return &ConnectError{Proxy: proxy, Err: err, at: r.URL}
}

// unusable reports whether the variable of a proxy has a value that net/http ignores, because it is no address.
func (c *Client) unusable(variable string) bool {
	value := cmp.Or(c.Getenv(variable), c.Getenv(strings.ToLower(variable)))
	_, whole := url.Parse(value)
	_, host := url.Parse("http://" + value)
	return whole != nil && host != nil
}

// phase is what a request waits for now. The zero phase is connecting.
type phase struct{ now atomic.Int32 }

const (
	connecting = iota
	shakingHands
	awaitingAnswer
	streaming
)

// trace returns a context whose request updates the phase.
func (p *phase) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.now.Store(shakingHands) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { p.now.Store(connecting) },
		GotConn:           func(httptrace.GotConnInfo) { p.now.Store(awaitingAnswer) },
	})
}

// silence returns the error for a provider that was silent for so long in this phase of a request.
func (c *Client) silence(now *phase, long time.Duration, target *url.URL) error {
	var err error
	switch now.now.Load() {
	case connecting:
		err = noConnection(fmt.Sprintf("no connection within %v", long))
	case shakingHands:
		err = fmt.Errorf("the TLS handshake was not finished within %v", long)
	case awaitingAnswer:
		err = fmt.Errorf("no answer within %v", long)
	default:
		return broken("idle timeout waiting for SSE")
	}
	return c.connectErr(&http.Request{URL: target}, err)
}
