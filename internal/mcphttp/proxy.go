package mcphttp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ProxyOptions configure a [Proxy].
type ProxyOptions struct {
	// URL is the server's URL with its path. The scheme is https, or http for this
	// machine.
	URL string
	// Token is sent with each request, unless it is "".
	Token string
	// Header is sent with each request. Headers of the protocol take precedence.
	Header http.Header
	// Foreign means that the server need not be codex-mcp: it may hold the head of a response
	// until it has the answer, or never answer. So no message waits for the answer to another
	// one, except for those of the handshake.
	Foreign bool
	// MaxMessage is the longest message of the server, in bytes. Default: 128 MiB.
	MaxMessage int
	// Transport sends the HTTP requests. Default: a copy of [http.DefaultTransport].
	Transport http.RoundTripper
}

// Proxy connects a client to a server over HTTP. It forwards the messages of both. It adds
// an initialize for a client of the older versions that sends none.
type Proxy struct {
	o      ProxyOptions
	t      jsonrpc.Transport
	close  func() error // t.Close, once
	client *http.Client
	ctx    context.Context // the context of HTTP requests
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutine of listen

	errands sync.WaitGroup // goroutines that forward answers

	writing sync.Mutex // held during t.Write
	unread  chan error // the first failure of t.Write

	mirrors mirrors // what the server's tools ask for

	renewing sync.Mutex // held while a session takes the place of another one

	mu      sync.Mutex
	session handshake
	open    map[jsonrpc.ID]*errand
}

// handshake is a session with a server of the older versions.
type handshake struct {
	id      string              // "" before initialize
	hello   []byte              // the client's initialize, or that of greet
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

// Validate reports what is wrong with the URL. [NewProxy] calls it.
func (o *ProxyOptions) Validate() error {
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

// NewProxy returns a proxy for the client at t.
func NewProxy(t jsonrpc.Transport, o *ProxyOptions) (*Proxy, error) {
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
	return &Proxy{
		o: own, t: t, close: sync.OnceValue(func() error { return t.Close() }), ctx: ctx, cancel: cancel, open: map[jsonrpc.ID]*errand{}, session: handshake{asked: map[jsonrpc.ID]bool{}}, unread: make(chan error, 1),
		client: &http.Client{Transport: transport, CheckRedirect: stay},
	}, nil
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

// Run forwards messages until the client's input or ctx ends, or a message cannot be written
// to the client. Then it cancels the requests without an answer.
func (p *Proxy) Run(ctx context.Context) error {
	if l, ok := p.t.(interface{ SetReadLimit(int) }); ok {
		l.SetReadLimit(defaultMaxBody)
	}
	// The last waits are bounded, for a client that does not read or a server that does not
	// answer.
	bound := time.AfterFunc(2*farewell, func() {
		p.cancel()
		_ = p.close()
	})
	bound.Stop()
	defer bound.Stop()
	hurry := func() { bound.Reset(2 * farewell) }
	defer context.AfterFunc(ctx, hurry)()
	lines, read := make(chan line), make(chan struct{})
	go func() {
		defer close(read)
		p.read(lines, hurry)
	}()
	err := p.forward(ctx, lines)
	hurry()
	p.leave()
	p.cancel()
	p.work.Wait()
	p.client.CloseIdleConnections()
	err = errors.Join(err, p.close())
	<-read
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// line is a message or an error of the transport.
type line struct {
	message []byte
	err     error
}

// read reads messages of the client until the transport or the proxy is closed. It calls gone
// when no more can come.
func (p *Proxy) read(lines chan<- line, gone func()) {
	for {
		m, err := p.t.Read(p.ctx)
		var one *jsonrpc.Error
		last := err != nil && !errors.As(err, &one)
		if last {
			gone() // the server may hold up the message before
		}
		select {
		case lines <- line{m, err}:
		case <-p.ctx.Done():
			return
		}
		if last {
			return
		}
	}
}

// forward forwards the messages of the client in order, until the client has gone or ctx ends.
func (p *Proxy) forward(ctx context.Context, lines <-chan line) error {
	for {
		var next line
		select {
		case next = <-lines:
		case err := <-p.unread:
			return err
		case <-ctx.Done():
			return nil
		}
		var one *jsonrpc.Error
		switch {
		case errors.Is(next.err, io.EOF):
			return nil
		case errors.As(next.err, &one):
			p.refuse(jsonrpc.ID{}, one)
			continue
		case next.err != nil:
			return next.err
		}
		line := next.message
		e, fault := parse(line)
		switch {
		case fault != nil:
			p.refuse(e.id, fault)
		case e.kind == request:
			p.request(&e, line)
		case e.kind == response:
			if p.answered(e.id) {
				p.note(line, p.o.Foreign)
			}
		case !p.cancelled(&e, line):
			p.note(line, false)
		}
	}
}

// leave ends the session, and waits up to farewell for the open requests.
func (p *Proxy) leave() {
	if p.sessionNow() != "" {
		ctx, cancel := context.WithTimeout(p.ctx, farewell)
		if answer, err := p.send(ctx, http.MethodDelete, nil, nil); err == nil {
			answer.Body.Close()
		}
		cancel()
	}
	timer := time.AfterFunc(farewell, p.cancel)
	defer timer.Stop()
	p.errands.Wait()
}

// cancelled handles a cancel notification, and reports whether the message is one. A request
// of 2026-07-28 is cancelled by closing its stream, a request of a session by the
// notification.
func (p *Proxy) cancelled(e *envelope, line []byte) bool {
	if e.kind != notification || e.method != "notifications/cancelled" {
		return false
	}
	p.mu.Lock()
	r := p.open[e.params.RequestID]
	if r != nil && r.fixed {
		r = nil
	}
	if r != nil {
		delete(p.open, e.params.RequestID)
	}
	p.mu.Unlock()
	if r == nil || !r.today {
		p.note(line, p.o.Foreign)
	}
	if r != nil {
		r.cancel()
	}
	return true
}

// request forwards a request. A goroutine forwards the answer.
func (p *Proxy) request(e *envelope, line []byte) {
	ctx, cancel := context.WithCancel(p.ctx)
	r := &errand{cancel: cancel, today: e.meta != nil, fixed: e.method == "initialize"}
	p.mu.Lock()
	taken := p.open[e.id] != nil
	if !taken {
		p.open[e.id] = r
	}
	p.mu.Unlock()
	if taken {
		cancel()
		p.refuse(e.id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "id %s is already in use", e.id))
		return
	}
	// A request of 2026-07-28 does not depend on those before it.
	if r.today || p.o.Foreign {
		p.errands.Go(func() {
			defer cancel()
			if !r.today {
				p.inSession(ctx, e, r, line)
				return
			}
			answer, err := p.send(ctx, http.MethodPost, line, p.todaysHeaders(e, line))
			p.answer(ctx, e, r, answer, err)
		})
		return
	}
	answer, err := p.accepted(ctx, e, r, line)
	if r.fixed {
		p.opened(ctx, e, r, line, answer, err) // further requests need the version in the answer
		cancel()
		return
	}
	p.errands.Go(func() {
		defer cancel()
		p.answer(ctx, e, r, answer, err)
	})
}

// inSession sends a request of the older versions and forwards the answer.
func (p *Proxy) inSession(ctx context.Context, e *envelope, r *errand, line []byte) {
	answer, err := p.accepted(ctx, e, r, line)
	if r.fixed {
		p.opened(ctx, e, r, line, answer, err)
		return
	}
	p.answer(ctx, e, r, answer, err)
}

// accepted sends a request of the older versions, in a new session if there is none or the
// server has forgotten it.
func (p *Proxy) accepted(ctx context.Context, e *envelope, r *errand, line []byte) (*http.Response, error) {
	if !p.greeted() && !r.fixed && e.method != "ping" {
		p.greet(ctx)
	}
	// With Prefer: stream the server sends the head of the response when it has accepted
	// the request. So the next message cannot overtake this one.
	prefer := http.Header{headerPrefer: {preferStream}}
	if r.fixed {
		prefer = nil
	}
	session := p.sessionNow()
	answer, err := p.send(ctx, http.MethodPost, line, prefer)
	if err == nil && answer.StatusCode == http.StatusNotFound && !r.fixed && p.renew(ctx, session) {
		// The server has forgotten the session, and so has not accepted the request.
		answer.Body.Close()
		answer, err = p.send(ctx, http.MethodPost, line, prefer)
	}
	r.session = p.sessionNow()
	return answer, err
}

// opened handles the answer to the client's initialize.
func (p *Proxy) opened(ctx context.Context, e *envelope, r *errand, line []byte, answer *http.Response, err error) {
	id := sessionOf(answer)
	if id != "" {
		p.begin(id)
		r.session = id
		p.mu.Lock()
		p.session.hello = line
		p.mu.Unlock()
	}
	p.answer(ctx, e, r, answer, err)
	if id != "" {
		p.work.Go(func() { p.listen(id) })
	}
}

// renew opens a session in place of one that the server has forgotten, once for all requests
// that learn of it. It returns false if there can be none.
func (p *Proxy) renew(ctx context.Context, forgotten string) bool {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	if p.sessionNow() != forgotten {
		return true
	}
	if !p.lose() {
		return false
	}
	p.greet(ctx)
	return true
}

// greet opens a session with the client's initialize, in place of one that the server has
// forgotten. For a client that sends requests without initialize it sends one of its own; like
// such a client of the program itself, it gets no questions. If that fails, the answer to the
// client's request reports why.
func (p *Proxy) greet(ctx context.Context) {
	p.mu.Lock()
	if p.session.hello == nil {
		p.session.hello = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"codex-mcp","version":"0"}}}`, mcptypes.ProtocolVersion)
	}
	hello := p.session.hello
	p.mu.Unlock()
	e, fault := parse(hello)
	if fault != nil {
		return // does not happen: it was parsed before
	}
	answer, err := p.send(ctx, http.MethodPost, hello, nil)
	id := sessionOf(answer)
	if err == nil {
		_, _ = p.consume(&e, &errand{}, answer, &position{}) // reads the version; no request waits for the answer
	}
	if id == "" {
		return
	}
	p.begin(id)
	p.note([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), false)
	p.work.Go(func() { p.listen(id) })
}

func sessionOf(answer *http.Response) string {
	if answer == nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return answer.Header.Get(headerSession)
}

func (p *Proxy) begin(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session.id = session
}

// greeted reports whether the server has answered an initialize. Not every server has sessions.
func (p *Proxy) greeted() bool {
	session, version := p.current()
	return session != "" || version != ""
}

// current returns the session and its version.
func (p *Proxy) current() (session, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.id, p.session.version
}

// lose forgets the session, and reports whether another one may take its place. It may not
// while the client can still answer a request of the server: the answer would count for a
// request of the new session that has the same id.
func (p *Proxy) lose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session.id == "" || len(p.session.asked) > 0 {
		return false
	}
	p.session.id, p.session.version = "", ""
	return true
}

// asks records a request of the server in a session. It returns false if the session is not
// the current one.
func (p *Proxy) asks(id jsonrpc.ID, session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session.id != session {
		return false
	}
	p.session.asked[id] = true
	return true
}

// answered records the client's response to a request of the server. It returns false if
// there is no such request without a response.
func (p *Proxy) answered(id jsonrpc.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.session.asked[id]
	delete(p.session.asked, id)
	return asked
}

// sessionNow returns the session.
func (p *Proxy) sessionNow() string {
	session, _ := p.current()
	return session
}

// send sends an HTTP request.
func (p *Proxy) send(ctx context.Context, method string, body []byte, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.o.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	for name, values := range p.o.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if more.Get(headerMethod) == "" {
		session, version := p.current()
		if session != "" {
			r.Header.Set(headerSession, session)
		}
		if version != "" {
			r.Header.Set(headerVersion, version)
		}
	}
	maps.Copy(r.Header, more)
	if p.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+p.o.Token)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.client.Do(r)
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
func (p *Proxy) todaysHeaders(e *envelope, line []byte) http.Header {
	version, ok := metaVersion(e)
	if !ok {
		version = modern.ProtocolVersion // the server reports what is missing
	}
	h := http.Header{headerVersion: {coded(version)}, headerMethod: {coded(e.method)}}
	for _, name := range []*string{e.params.Name, e.params.URI, e.params.TaskID} {
		if name != nil {
			h[headerName] = []string{coded(*name)}
			break
		}
	}
	if !p.mirrors.headers(h, e, line) && e.params.ThreadID != nil {
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

// note forwards a notification or a response. Unless apart is set, the next message waits
// until the server has it.
func (p *Proxy) note(line []byte, apart bool) {
	send := func() {
		ctx, cancel := context.WithTimeout(p.ctx, noteTime)
		defer cancel()
		answer, err := p.send(ctx, http.MethodPost, line, nil)
		if err == nil { // if the server cannot be reached, open requests report that
			answer.Body.Close()
		}
	}
	if apart {
		p.errands.Go(send)
		return
	}
	send()
}

// forget removes an open request. It reports false if the request was not open any more: the
// client does not wait for its answer.
func (p *Proxy) forget(id jsonrpc.ID, r *errand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id] != r {
		return false
	}
	delete(p.open, id)
	return true
}

// refuse sends the client an error in place of an answer of the server.
func (p *Proxy) refuse(id jsonrpc.ID, fault *jsonrpc.Error) {
	said := map[string]any{"code": int64(fault.Code), "message": fault.Message}
	if fault.Data != nil {
		said["data"] = jsontext.Value(fault.Data)
	}
	m, err := jsonv2.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": jsontext.Value(id.AppendJSON(nil)), "error": said,
	}, jsontext.AllowInvalidUTF8(true), jsonv2.Deterministic(true))
	if err == nil {
		p.write(m)
	}
}

// write sends a message to the client. A failure means that the client has gone.
func (p *Proxy) write(m []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	v := jsontext.Value(m)
	if v.Compact(lenient()) != nil {
		return // not JSON, so the client could not read it
	}
	if err := p.t.Write(context.Background(), [][]byte{v}); err != nil {
		select {
		case p.unread <- err:
		default:
		}
	}
}
