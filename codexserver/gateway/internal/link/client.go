package link

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// Place is where a server is.
type Place struct {
	// ID is that of the server, and Address has a host and a port.
	ID, Address string
}

// Client sends requests to servers. It is safe for concurrent use.
type Client struct {
	transport *http.Transport

	mu     sync.Mutex
	clocks map[Place]heard
}

// heard is the time of a server, and when it came.
type heard struct {
	clock clock
	at    time.Time
}

// idleTimeout is how long a connection lasts that nothing uses.
const idleTimeout = time.Minute

// NewClient returns a client with these certificates. The caller must close it.
func NewClient(certificates Certificates) *Client {
	c := &Client{clocks: map[Place]heard{}}
	protocols, config := http2()
	c.transport = &http.Transport{
		Protocols: protocols, HTTP2: config, DialTLSContext: certificates.dial, DisableCompression: true, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxHead,
	}
	return c
}

// Close closes the connections. All exchanges must have ended.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// dialError means that there is no connection, over which a request could have been sent.
type dialError struct{ error }

// dial connects to a server, and checks its certificate.
func (c Certificates) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lostAfter)
	defer cancel()
	config, err := c.config()
	if err != nil {
		return nil, dialError{err}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	return conn, nil
}

// Do sends a request to a server, and returns the answer. It waits for the answer until ctx ends. head
// has the fields that the client does not set. The caller must close the body of the answer. Until
// then nobody else may use the body of the request.
//
// An error that is not [ErrAbsent] or [ErrRefused] leaves open whether the request was carried
// out.
func (c *Client) Do(ctx context.Context, to Place, head Head, r *http.Request) (*http.Response, error) {
	if to.Address == "" {
		return nil, fmt.Errorf("%w: its address is not known", ErrAbsent)
	}
	header, err := passed(r)
	if err != nil {
		return nil, err
	}
	now, err := c.clock(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	head.Clock, head.Request, head.Method, head.URL = now.clock, rand.Text(), r.Method, r.URL.RequestURI()
	answer, err := c.send(ctx, to, head, header, r)
	if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrAbsent) {
		return answer, err
	}
	if seen := (streamError{}); errors.As(err, &seen) {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	// The request may be under way. Wait until the server does not begin it any more.
	late := time.NewTimer(time.Until(now.at.Add(lasts)))
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done(): // the client has left
	}
	return nil, fmt.Errorf("%w: %w", ErrLost, err)
}

// streamError is how the server ends an exchange that it has begun. The error of package http becomes one, which has
// the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error implements error.
func (e streamError) Error() string { return fmt.Sprintf("the node ended the exchange: %d", e.Code) }

// send sends a request. The transport may do so again, if it knows that the server has not seen it; the server
// does not begin it twice in any case.
func (c *Client) send(ctx context.Context, to Place, head Head, header http.Header, r *http.Request) (_ *http.Response, err error) {
	defer func() {
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.clocks, to)
		}
	}()
	head.Node = to.ID
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+to.Address+"/", r.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	out.GetBody, out.ContentLength, out.Header = r.GetBody, r.ContentLength, header
	if header["User-Agent"] == nil {
		header["User-Agent"] = []string{""} // none
	}
	header.Set(headHeader, string(text))
	answer, err := c.transport.RoundTrip(out)
	if never := (dialError{}); errors.As(err, &never) && !sent.Load() {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	if err != nil {
		return nil, err
	}
	now := heard{at: time.Now()}
	if err := json.Unmarshal([]byte(answer.Header.Get(clockHeader)), &now.clock); err != nil {
		return nil, errors.Join(fmt.Errorf("the answer with the status %d is not that of a node: %w", answer.StatusCode, err), answer.Body.Close())
	}
	if answer.Header.Get(whatHeader) == refused {
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason)) // only for the log
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	for _, name := range []string{whatHeader, clockHeader} {
		answer.Header.Del(name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clocks[to] = now
	return answer, nil
}

// clock returns the time of a server. It asks if what it has heard is old.
func (c *Client) clock(ctx context.Context, to Place) (heard, error) {
	c.mu.Lock()
	now, known := c.clocks[to]
	for place, other := range c.clocks { // servers that have ended
		if time.Since(other.at) > idleTimeout {
			delete(c.clocks, place)
		}
	}
	c.mu.Unlock()
	if known && time.Since(now.at) < lasts/2 {
		return now, nil
	}
	answer, err := c.send(ctx, to, Head{}, http.Header{}, &http.Request{Body: http.NoBody})
	if err != nil {
		return heard{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clocks[to], answer.Body.Close()
}
