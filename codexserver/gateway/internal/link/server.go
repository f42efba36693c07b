package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Handler carries out the requests of a [Server].
type Handler interface {
	// Admit decides whether a request is carried out, without waiting. The context that it
	// returns is that of the request: it derives from ctx. An error refuses the request, and
	// its text is for the client.
	Admit(ctx context.Context, h *Head) (context.Context, error)
	// ServeHTTP carries out an admitted request. [HeadOf] returns its head.
	http.Handler
}

// Server receives requests. It is safe for concurrent use.
type Server struct {
	conn    *nats.Conn
	id      string
	handler Handler
	log     *slog.Logger
	sub     *nats.Subscription
	ends    ends
	clients clients // only the subscription's goroutine uses it

	stop    context.CancelFunc
	running sync.WaitGroup
}

// NewServer returns a server on a connection. The caller must close it before the connection.
func NewServer(conn *nats.Conn, h Handler, log *slog.Logger, o *Options) (*Server, error) {
	if err := checkPayload(conn); err != nil {
		return nil, err
	}
	s := &Server{conn: conn, id: rand.Text(), handler: h, log: log}
	var err error
	if s.sub, err = conn.Subscribe(serverSubject(s.id, "*"), s.receive); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.ends.beat(ctx, o.heartbeat()) })
	return s, nil
}

// ID returns the id by which a [Client] finds the server. It is new for each server.
func (s *Server) ID() string { return s.id }

// Wait waits until all requests have ended, or ctx.
func (s *Server) Wait(ctx context.Context) error { return s.ends.wait(ctx) }

// Close cancels all requests and waits for their ends.
func (s *Server) Close() error {
	err := s.sub.Unsubscribe()
	s.ends.close()
	defer s.running.Wait()
	s.stop()
	return errors.Join(err, s.ends.wait(context.Background()))
}

// receive handles a frame of a client.
func (s *Server) receive(m *nats.Msg) {
	exchange := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	if e := s.ends.find(exchange); e != nil {
		e.receive(m.Data, time.Now())
		return
	}
	f, err := parseFrame(m.Data)
	if err != nil || f.kind != kindHead || f.number != 0 || !validID(exchange) {
		return // late or forged
	}
	h := &Head{}
	if err := decodeHead(f.payload, h); err != nil || !validID(h.Client) {
		s.log.Warn("a front sent an invalid request", "error", err)
		return
	}
	to := clientSubject(h.Client, exchange)
	e := newEnd(exchange, time.Now(), func(b []byte) error { return s.conn.Publish(to, b) })
	e.expected = 1
	refuse := func(reason string) {
		_ = e.write(kindRefuse, []byte(reason[:min(len(reason), maxReason)])) // else the silence refuses
	}
	if !s.clients.fresh(h.Client, h.Number) {
		s.log.Warn("a front sent a request again", "front", h.Client)
		return
	}
	r, err := newRequest(h, e)
	if err != nil {
		refuse(err.Error())
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ctx, err = s.handler.Admit(context.WithValue(ctx, headKey{}, h), h)
	if err != nil {
		cancel()
		refuse(err.Error())
		return
	}
	if !s.ends.add(e, maxExchanges) {
		cancel()
		refuse("too many requests are open")
		return
	}
	go func() {
		defer cancel()
		s.serve(ctx, cancel, e, r)
	}()
}

// headKey is the key of a head in a context.
type headKey struct{}

// HeadOf returns the head of a request, or nil if it does not come from a [Server].
func HeadOf(ctx context.Context) *Head {
	h, _ := ctx.Value(headKey{}).(*Head)
	return h
}

// newRequest returns the HTTP request for a head.
func newRequest(h *Head, e *end) (*http.Request, error) {
	u, err := url.ParseRequestURI(h.URL)
	if err != nil || !strings.HasPrefix(h.URL, "/") || h.Length < 0 {
		return nil, errors.New("the URL or the length is invalid")
	}
	if h.Header == nil {
		h.Header = http.Header{}
	}
	r := &http.Request{
		Method: h.Method, URL: u, RequestURI: h.URL, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost",
		Header: h.Header, ContentLength: h.Length, Body: &requestBody{e},
	}
	if h.Length == 0 {
		r.Body = http.NoBody
	}
	return r, nil
}

// requestBody is the body of a request. The context of the request ends when the exchange
// does.
type requestBody struct{ end *end }

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) { return b.end.read(context.Background(), p) }

// Close implements [io.Closer].
func (b *requestBody) Close() error { return nil }

// serve carries out a request.
func (s *Server) serve(ctx context.Context, cancel context.CancelFunc, e *end, r *http.Request) {
	defer s.ends.remove(e)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-e.done:
			cancel()
		case <-over:
		}
	}()
	// The reverse proxy of package httputil panics for an incomplete answer only if it finds a
	// server in the context.
	ctx = context.WithValue(ctx, http.ServerContextKey, s)
	w := &answer{end: e, ctx: ctx, header: http.Header{}}
	reason := s.handle(w, r.WithContext(ctx))
	if reason == "" && !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if reason == "" && (w.err != nil || e.failure() != nil) {
		reason = "the answer could not be sent"
	}
	_ = e.writeEnd(reason) // else the silence ends it
	e.fail(ErrClosed)
}

// handle calls the handler. It returns why the answer is not complete, or "".
func (s *Server) handle(w http.ResponseWriter, r *http.Request) (reason string) {
	defer func() {
		if v := recover(); v != nil {
			reason = "the answer broke off"
			if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				s.log.Error("a request failed", "error", fmt.Sprint(v))
			}
		}
	}()
	s.handler.ServeHTTP(w, r)
	return ""
}

// answer is the [http.ResponseWriter] of a server. It sends everything at once.
type answer struct {
	end    *end
	ctx    context.Context
	header http.Header
	begun  bool
	err    error
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.begun || status < 200 {
		return
	}
	a.begun = true
	payload, err := json.Marshal(answerHead{status, a.header})
	if err == nil && len(payload) > maxHead {
		err = errors.New("the headers of the answer are too long")
	}
	if err == nil {
		err = a.end.write(kindHead, payload)
	}
	a.err = err
}

// Write implements [io.Writer]. It waits for the client's side.
func (a *answer) Write(p []byte) (n int, err error) {
	a.WriteHeader(http.StatusOK)
	if a.err == nil {
		n, a.err = a.end.writeBody(a.ctx, p)
	}
	return n, a.err
}

// FlushError is for [http.ResponseController].
func (a *answer) FlushError() error { return a.err }

var _ io.Writer = (*answer)(nil)

// clients remembers the number of the latest request of each client, so that no request is
// carried out twice.
type clients struct {
	latest map[string]uint64
	order  []string // the clients, the oldest first
}

// maxClients bounds the clients that are remembered.
const maxClients = 4096

// fresh reports whether a number is larger than those before it, and remembers it.
func (c *clients) fresh(id string, number uint64) bool {
	last, known := c.latest[id]
	if number <= last {
		return false
	}
	if c.latest == nil {
		c.latest = map[string]uint64{}
	}
	if !known {
		if len(c.order) >= maxClients {
			delete(c.latest, c.order[0])
			c.order = c.order[1:]
		}
		c.order = append(c.order, id)
	}
	c.latest[id] = number
	return true
}
