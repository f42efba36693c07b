package mcphttp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// URL is the server's URL with its path. The scheme is https, or http for this
	// machine.
	URL string
	// Token is sent with each request, unless it is "".
	Token string
	// Header is sent with each request. Headers of the protocol take precedence.
	Header http.Header
	// MaxMessage is the longest message of the server, in bytes. Default: 128 MiB.
	MaxMessage int
	// Transport sends the HTTP requests. Default: a copy of [http.DefaultTransport].
	Transport http.RoundTripper
}

// Client is a server over HTTP as a [jsonrpc.Transport] of a [jsonrpc.Peer]. The caller must close it. A write does not
// wait until the server has the messages.
//
// The server may hold the head of a response until it has the answer, or never answer. So a message waits only until the
// server has the notifications before it.
type Client struct {
	jsonrpc.Transport                   // the peer's end of a pipe
	pipe              jsonrpc.Transport // the other end

	o      ClientOptions
	client *http.Client
	ctx    context.Context // the context of HTTP requests
	cancel context.CancelFunc

	listening sync.WaitGroup // the goroutines of listen
	errands   sync.WaitGroup // goroutines that wait for answers
	notes     sync.WaitGroup // goroutines of note
	forwarded chan struct{}  // closed when forward has returned

	mirrors mirrors // what the server's tools ask for

	renewing slots.Slots // taken while a session takes the place of another one

	mu      sync.Mutex
	session handshake
	open    map[jsonrpc.ID]*errand
}

// handshake is a session with a server of the older versions.
type handshake struct {
	id      string              // "" before initialize
	hello   message             // the client's initialize
	asked   map[jsonrpc.ID]bool // requests of the server that the client has not answered
	version string
}

// errand is a request of the client without an answer.
type errand struct {
	cancel  context.CancelFunc
	today   bool   // the request is of 2026-07-28
	fixed   bool   // the request cannot be cancelled
	session string // that of the request
}

// Validate reports what is wrong with the URL. [NewClient] calls it.
func (o *ClientOptions) Validate() error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return fmt.Errorf("the server's URL: %w", withoutURL(err))
	case u.Host == "" || u.User != nil:
		return errors.New("the server's URL: want a URL such as http://127.0.0.1:4517/mcp")
	case u.Scheme != "https" && (u.Scheme != "http" || !webaddr.Loopback(u.Hostname())):
		return errors.New("the server's URL: want https: others on the network could read the token")
	}
	return nil
}

// NewClient returns a transport to a server. It connects with the first message.
func NewClient(o *ClientOptions) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	own := *o
	if own.MaxMessage <= 0 {
		own.MaxMessage = maxLine
	}
	ctx, cancel := context.WithCancel(context.Background())
	transport := o.Transport
	if transport == nil {
		copied := http.DefaultTransport.(*http.Transport).Clone()
		copied.MaxIdleConnsPerHost = 32
		transport = copied
	}
	c := &Client{
		o: own, ctx: ctx, cancel: cancel, open: map[jsonrpc.ID]*errand{}, renewing: slots.New(1),
		session: handshake{asked: map[jsonrpc.ID]bool{}},
		client:  &http.Client{Transport: transport, CheckRedirect: stay}, forwarded: make(chan struct{}),
	}
	c.Transport, c.pipe = jsonrpc.Pipe()
	go c.forward()
	return c, nil
}

const (
	// farewell is how long open requests may take after the client has gone.
	farewell = time.Second
	// maxLine is the longest message of the server by default, in bytes.
	maxLine = 128 << 20
	// noteTime bounds the answer to a notification of the client, or to its answer to a
	// question.
	noteTime = 30 * time.Second
)

// Close implements [jsonrpc.Transport]. It forwards what was written, ends the session, and cancels the requests
// without an answer.
func (c *Client) Close() error {
	_ = c.Transport.Close()                           // never fails
	defer time.AfterFunc(2*farewell, c.cancel).Stop() // for a server that does not answer
	<-c.forwarded
	return nil
}

// forward forwards the messages of the client in order, until it is closed.
func (c *Client) forward() {
	defer close(c.forwarded)
	for {
		line, err := c.pipe.Read(c.ctx)
		if err != nil {
			break
		}
		c.forwardOne(line)
	}
	c.leave()
	c.cancel()
	c.listening.Wait()
	c.client.CloseIdleConnections()
}

func (c *Client) forwardOne(line []byte) {
	e, fault := parse(line)
	switch {
	case fault != nil: // a peer writes none
	case e.kind == request:
		c.request(&e, line)
	case e.kind == response:
		if c.answered(e.id) {
			c.notes.Go(func() { c.note(line) })
		}
	case !c.cancelled(&e, line):
		c.note(line)
	}
}

// leave ends the session, and waits up to farewell for the open requests. The server first gets the last answers.
func (c *Client) leave() {
	c.notes.Wait()
	if c.sessionNow() != "" {
		ctx, cancel := context.WithTimeout(c.ctx, farewell)
		if answer, err := c.send(ctx, http.MethodDelete, nil, nil); err == nil {
			answer.Body.Close()
		}
		cancel()
	}
	timer := time.AfterFunc(farewell, c.cancel)
	defer timer.Stop()
	c.errands.Wait()
}

// cancelled handles a cancel notification, and reports whether the message is one. A request
// of 2026-07-28 is cancelled by closing its stream, a request of a session by the
// notification.
func (c *Client) cancelled(e *envelope, line []byte) bool {
	if e.kind != notification || e.method != "notifications/cancelled" {
		return false
	}
	c.mu.Lock()
	r := c.open[e.params.RequestID]
	if r != nil && r.fixed {
		r = nil
	}
	if r != nil {
		delete(c.open, e.params.RequestID)
	}
	c.mu.Unlock()
	if r == nil || !r.today {
		c.notes.Go(func() { c.note(line) })
	}
	if r != nil {
		r.cancel()
	}
	return true
}

// request forwards a request. A goroutine forwards the answer.
func (c *Client) request(e *envelope, line []byte) {
	ctx, cancel := context.WithCancel(c.ctx)
	r := &errand{cancel: cancel, today: e.meta != nil, fixed: e.method == "initialize"}
	c.mu.Lock()
	c.open[e.id] = r
	c.mu.Unlock()
	c.errands.Go(func() {
		defer cancel()
		switch {
		case r.today:
			got, err := c.send(ctx, http.MethodPost, line, c.todaysHeaders(e, line))
			c.answer(ctx, e, r, got, err)
		case r.fixed:
			c.begin(ctx, r, message{e, line})
		default:
			got, err := c.inSession(ctx, r, line)
			c.answer(ctx, e, r, got, err)
		}
	})
}

// inSession sends a request of the older versions, in a new session if the server has forgotten its own.
func (c *Client) inSession(ctx context.Context, r *errand, line []byte) (*http.Response, error) {
	leave, err := c.renewing.Take(ctx) // no request is sent while another one opens a session
	if err != nil {
		return nil, err
	}
	session, version := c.current() // not every server has sessions
	if session == "" && version == "" {
		c.greet(ctx)
		session = c.sessionNow()
	}
	leave()
	got, err := c.send(ctx, http.MethodPost, line, nil)
	if err == nil && got.StatusCode == http.StatusNotFound && c.renew(ctx, session) {
		// The server has forgotten the session, and so has not accepted the request.
		got.Body.Close()
		got, err = c.send(ctx, http.MethodPost, line, nil)
	}
	r.session = c.sessionNow()
	return got, err
}

// begin sends initialize and forwards the answer. It reports whether that has opened a session.
func (c *Client) begin(ctx context.Context, r *errand, hello message) (opened bool) {
	answer, err := c.send(ctx, http.MethodPost, hello.body, nil)
	if err == nil && answer.StatusCode == http.StatusOK {
		r.session = answer.Header.Get(headerSession)
	}
	if opened = r.session != ""; opened {
		c.mu.Lock()
		c.session.id, c.session.hello = r.session, hello
		c.mu.Unlock()
	}
	c.answer(ctx, hello.envelope, r, answer, err)
	if opened {
		c.listening.Go(func() { c.listen(r.session) })
	}
	return opened
}

// renew opens a session in place of one that the server has forgotten, once for all requests
// that learn of it. It returns false if there can be none: not while the client can still answer a
// request of the server, because the answer would count for a request of the new session that has
// the same id.
func (c *Client) renew(ctx context.Context, forgotten string) bool {
	leave, err := c.renewing.Take(ctx)
	if err != nil {
		return false
	}
	defer leave()
	if c.sessionNow() != forgotten {
		return true
	}
	c.mu.Lock()
	may := forgotten != "" && len(c.session.asked) == 0
	if may {
		c.session.id, c.session.version = "", ""
	}
	c.mu.Unlock()
	if may {
		c.greet(ctx)
	}
	return may
}

// greet opens a session with the client's initialize, in place of one that the server has
// forgotten. If that fails, the answer to the client's request reports why. The caller has taken c.renewing.
func (c *Client) greet(ctx context.Context) {
	c.mu.Lock()
	hello := c.session.hello
	c.mu.Unlock()
	if hello.envelope == nil {
		return // the server's answer says that initialize is missing
	}
	if c.begin(ctx, &errand{}, hello) { // no request of the client waits for the answer
		c.note([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
}

// current returns the session and its version.
func (c *Client) current() (session, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.id, c.session.version
}

// asks records a request of the server in a session. It returns false if the session is not
// the current one.
func (c *Client) asks(id jsonrpc.ID, session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.id != session {
		return false
	}
	c.session.asked[id] = true
	return true
}

// answered records the client's response to a request of the server. It returns false if
// there is no such request without a response.
func (c *Client) answered(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.session.asked[id]
	delete(c.session.asked, id)
	return asked
}

// sessionNow returns the session.
func (c *Client) sessionNow() string {
	session, _ := c.current()
	return session
}

// send sends an HTTP request.
func (c *Client) send(ctx context.Context, method string, body []byte, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.o.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	for name, values := range c.o.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if more.Get(headerMethod) == "" {
		session, version := c.current()
		if session != "" {
			r.Header.Set(headerSession, session)
		}
		if version != "" {
			r.Header.Set(headerVersion, version)
		}
	}
	maps.Copy(r.Header, more)
	if c.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	return answer, nil
}

// withoutURL returns an error without the URL, which may hold a secret.
func withoutURL(err error) error {
	if whole, ok := errors.AsType[*url.Error](err); ok {
		return whole.Err
	}
	return err
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// stay follows a redirect that repeats the same request within the server's origin, for example
// with a slash at the end. Every other one is returned as the answer: a request has the token.
func stay(r *http.Request, via []*http.Request) error {
	from, status := via[0].URL, r.Response.StatusCode
	if (status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect) &&
		r.URL.Scheme == from.Scheme && r.URL.Host == from.Host && r.URL.User == nil && len(via) <= maxRedirects {
		return nil
	}
	return http.ErrUseLastResponse
}

// todaysHeaders returns the headers that mirror the body of a request of 2026-07-28. codex-mcp
// requires that of the argument threadId for all of its tools, and for clients that list none.
func (c *Client) todaysHeaders(e *envelope, line []byte) http.Header {
	version := cmp.Or(metaVersion(e), new(modern.ProtocolVersion)) // the server reports what is missing
	h := http.Header{headerVersion: {coded(*version)}, headerMethod: {coded(e.method)}}
	for _, name := range []*string{e.params.Name, e.params.URI, e.params.TaskID} {
		if name != nil {
			h[headerName] = []string{coded(*name)}
			break
		}
	}
	if !c.mirrors.headers(h, e, line) && e.params.ThreadID != nil {
		h[headerThread] = []string{coded(*e.params.ThreadID)}
	}
	return h
}

// coded returns a text as a header value, in base64 if necessary.
func coded(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if odd || strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") || s == "" {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

// note forwards a notification or a response, and waits until the server has it.
func (c *Client) note(line []byte) {
	ctx, cancel := context.WithTimeout(c.ctx, noteTime)
	defer cancel()
	answer, err := c.send(ctx, http.MethodPost, line, nil)
	if err == nil { // if the server cannot be reached, open requests report that
		answer.Body.Close()
	}
}

// forget removes an open request. It reports false if the request was not open any more: the
// client does not wait for its answer.
func (c *Client) forget(id jsonrpc.ID, r *errand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] != r {
		return false
	}
	delete(c.open, id)
	return true
}

// write sends a message to the client, unless that has closed the transport.
func (c *Client) write(m []byte) { _ = c.pipe.Write(c.ctx, [][]byte{m}) }
