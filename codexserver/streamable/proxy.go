package streamable

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

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ProxyOptions say where a [Proxy] finds its server.
type ProxyOptions struct {
	// URL is the server's, with its path. It is https, or http on this machine.
	URL string
	// Token goes with every request.
	Token string
}

// Proxy is a client's connection to a server over HTTP. It passes on what both send, and
// adds nothing.
type Proxy struct {
	o      ProxyOptions
	t      jsonrpc.Transport
	close  func() error // t.Close, once
	client *http.Client
	ctx    context.Context // of HTTP requests
	cancel context.CancelFunc
	work   sync.WaitGroup

	errands sync.WaitGroup

	writing sync.Mutex // for t.Write
	unread  chan error // the first failure of t.Write

	mu      sync.Mutex
	session string // "" before initialize
	version string // of the session
	open    map[jsonrpc.ID]*errand
}

// errand is a request of the client that is not answered.
type errand struct {
	cancel context.CancelFunc
	today  bool // of 2026-07-28
	fixed  bool // cannot be cancelled
}

// NewProxy returns a proxy for the client at t.
func NewProxy(t jsonrpc.Transport, o *ProxyOptions) (*Proxy, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the server's URL: %w", err)
	case u.Host == "" || u.User != nil:
		return nil, fmt.Errorf("the server's URL: want one such as http://127.0.0.1:4517/mcp")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("the server's URL: want https: others on the network could read the token")
	}
	ctx, cancel := context.WithCancel(context.Background())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	return &Proxy{
		o: *o, t: t, close: sync.OnceValue(func() error { return t.Close() }), ctx: ctx, cancel: cancel, open: map[jsonrpc.ID]*errand{}, unread: make(chan error, 1),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

const (
	// farewell is how long open requests may take once the client has gone.
	farewell = time.Second
	// maxLine is the longest message in either direction.
	maxLine = 128 << 20
	// retries is how often a broken stream is taken up again, each time later.
	retries    = 6
	retryAfter = 100 * time.Millisecond
)

// Run hands messages on until the client's input or ctx ends, or the client reads no
// more. What is open then is cancelled.
func (p *Proxy) Run(ctx context.Context) error {
	if l, ok := p.t.(interface{ SetReadLimit(int) }); ok {
		l.SetReadLimit(defaultMaxBody)
	}
	lines, read := make(chan line), make(chan struct{})
	go func() {
		defer close(read)
		p.read(lines)
	}()
	defer context.AfterFunc(ctx, p.hurry)()
	err := p.handOn(ctx, lines)
	p.hurry()
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

// hurry ends what still waits in the end: for a client that does not read, or for a
// server that does not answer.
func (p *Proxy) hurry() {
	time.AfterFunc(2*farewell, func() {
		p.cancel()
		_ = p.close()
	})
}

// line is what the transport has read.
type line struct {
	message []byte
	err     error
}

// read reads what the client sends until the transport or the proxy is closed.
func (p *Proxy) read(lines chan<- line) {
	for {
		m, err := p.t.Read(p.ctx)
		select {
		case lines <- line{m, err}:
		case <-p.ctx.Done():
			return
		}
		var one *jsonrpc.Error
		if err != nil && !errors.As(err, &one) {
			return
		}
	}
}

// handOn hands on what the client sends, in order, until the client has gone or ctx ends.
func (p *Proxy) handOn(ctx context.Context, lines <-chan line) error {
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
		case !p.cancelled(&e, line):
			p.note(line)
		}
	}
}

// leave ends the session, and waits for a moment for what is open.
func (p *Proxy) leave() {
	if session, _ := p.current(); session != "" {
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

// cancelled takes a request off the open ones that the client cancels. One of
// 2026-07-28 is cancelled by closing its stream, one of a session by the notification.
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
		p.note(line)
	}
	if r != nil {
		r.cancel()
	}
	return true
}

// request hands on a request, and its answer when that comes.
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
	if r.today { // it depends on nothing that came before
		p.errands.Go(func() {
			defer cancel()
			answer, err := p.send(ctx, http.MethodPost, line, todaysHeaders(e))
			p.answer(ctx, e, r, answer, err)
		})
		return
	}
	// The head of the response comes when the server has the message: the next one
	// does not overtake it.
	answer, err := p.send(ctx, http.MethodPost, line, http.Header{headerPrefer: {preferStream}})
	if id := sessionOf(answer); e.method == "initialize" && id != "" {
		p.begin(id)
		p.answer(ctx, e, r, answer, err) // the version that it names goes with what follows
		cancel()
		p.work.Go(p.listen)
		return
	}
	p.errands.Go(func() {
		defer cancel()
		p.answer(ctx, e, r, answer, err)
	})
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
	p.session = session
}

// current returns the session and its version.
func (p *Proxy) current() (session, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session, p.version
}

// send sends a request of HTTP.
func (p *Proxy) send(ctx context.Context, method string, body []byte, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.o.URL, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	if more.Get(headerMethod) == "" {
		if session, version := p.current(); session != "" {
			r.Header.Set(headerSession, session)
			if version != "" {
				r.Header.Set(headerVersion, version)
			}
		}
	}
	maps.Copy(r.Header, more)
	r.Header.Set("Authorization", "Bearer "+p.o.Token)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return p.client.Do(r)
}

// todaysHeaders say what the body of a request of 2026-07-28 says.
func todaysHeaders(e *envelope) http.Header {
	version, ok := metaVersion(e)
	if !ok {
		version = modern.ProtocolVersion // the server says what is missing
	}
	h := http.Header{headerVersion: {coded(version)}, headerMethod: {coded(e.method)}}
	for _, name := range []*string{e.params.Name, e.params.URI, e.params.TaskID} {
		if name != nil {
			h[headerName] = []string{coded(*name)}
			break
		}
	}
	if e.params.ThreadID != nil {
		h[headerThread] = []string{coded(*e.params.ThreadID)}
	}
	return h
}

// coded writes a text as a header can have it.
func coded(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if odd || strings.TrimSpace(s) != s || strings.HasPrefix(s, "=?base64?") || s == "" {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}

// note hands on what is not answered.
func (p *Proxy) note(line []byte) {
	answer, err := p.send(p.ctx, http.MethodPost, line, nil)
	if err == nil { // for a server that is gone, the open requests report it
		answer.Body.Close()
	}
}

// forget takes a request off the open ones, and reports whether it was there: its
// answer is still wanted.
func (p *Proxy) forget(id jsonrpc.ID, r *errand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id] != r {
		return false
	}
	delete(p.open, id)
	return true
}

// refuse answers for the server.
func (p *Proxy) refuse(id jsonrpc.ID, fault *jsonrpc.Error) {
	m, err := jsonv2.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": jsontext.Value(id.AppendJSON(nil)),
		"error": map[string]any{"code": int64(fault.Code), "message": fault.Message},
	}, jsontext.AllowInvalidUTF8(true), jsonv2.Deterministic(true))
	if err == nil {
		p.write(m)
	}
}

// write hands a message to the client. One that does not read has gone.
func (p *Proxy) write(m []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	v := jsontext.Value(m)
	if v.Compact(lenient) != nil {
		return // no JSON: the client could not read it
	}
	if err := p.t.Write(context.Background(), [][]byte{v}); err != nil {
		select {
		case p.unread <- err:
		default:
		}
	}
}
