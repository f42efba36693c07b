package link

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/go-json-experiment/json"
)

// Handler carries out the requests of a [Server].
type Handler interface {
	// Admit decides whether a request is carried out, without waiting. The context that it
	// returns is that of the request: it derives from ctx. When it ends, so does the exchange. The server calls
	// release when the exchange has ended. An error refuses the request, and its text is for the log of the front.
	Admit(ctx context.Context, h *Head) (admitted context.Context, release func(), err error)
	// ServeHTTP carries out an admitted request. [HeadOf] returns its head. Of a request of this process it has
	// GetBody, too.
	http.Handler
}

// Server receives requests. It is safe for concurrent use.
type Server struct {
	id      string
	handler Handler
	log     *slog.Logger
	started time.Time
	begun   recent
	ctx     context.Context // ends all exchanges
	stop    context.CancelFunc
	http    *http.Server

	running sync.WaitGroup // exchanges, and what accepts connections
	mu      sync.Mutex
	open    int // exchanges
	closed  bool
}

const (
	// maxConnections bounds the connections to a server.
	maxConnections = 1024
	// endTimeout bounds how long an exchange that has to end may say why.
	endTimeout = time.Second
)

// NewServer returns a server, which only [Server.Do] reaches. The caller must close it.
func NewServer(h Handler, log *slog.Logger) *Server {
	s := &Server{id: rand.Text(), handler: h, log: log, started: time.Now()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	protocols, config := http2()
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.receive), Protocols: protocols, HTTP2: config, MaxHeaderBytes: 4 * maxHead, ReadHeaderTimeout: lostAfter, IdleTimeout: 2 * idleTimeout,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// Listen lets clients connect to l, which may be nil, and which the server closes. It is for one call.
func (s *Server) Listen(l net.Listener, certificates Certificates) {
	if l == nil {
		return
	}
	s.http.TLSConfig = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return certificates.config()
	}}
	s.running.Go(func() {
		if err := s.http.ServeTLS(httpserve.Limit(l, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("fronts cannot connect any more", "error", err)
		}
	})
}

// ID returns the id by which a [Client] knows the server. It is new for each server.
func (s *Server) ID() string { return s.id }

// Close refuses further requests, and waits for the ends of all exchanges. When ctx ends it cancels them.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.running.Wait()
	}()
	_ = s.http.Shutdown(ctx) // the end of ctx is no error
	select {
	case <-ended:
	case <-ctx.Done():
	}
	s.stop()
	err := s.http.Close()
	<-ended
	return err
}

// begin notes an exchange, until end is called.
func (s *Server) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open >= maxExchanges {
		return errors.New("too many requests are open, or the node ends")
	}
	s.open++
	s.running.Add(1)
	return nil
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.running.Done()
}

// receive handles what comes from a connection.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "the client is not verified", http.StatusForbidden)
		return
	}
	head, now := &Head{}, newClock(s.started)
	if text := r.Header[headHeader]; len(text) != 1 || json.Unmarshal([]byte(text[0]), head, json.RejectUnknownMembers(true)) != nil {
		s.log.Warn("a front sent an invalid request")
		http.Error(w, "the request is invalid", http.StatusBadRequest)
		return
	}
	a := &answer{ResponseWriter: w, server: s}
	switch {
	case head.Node != s.id:
		a.refuse("another process has this address")
		return
	case head.Request == "":
		a.WriteHeader(http.StatusNoContent)
		return
	case now.late(head.Clock):
		a.refuse("it comes late")
		return
	case !s.begun.add(head.Request, time.Now()):
		s.log.Warn("a front sent a request again")
		panic(http.ErrAbortHandler) // not a refusal: it may have been carried out
	}
	for _, name := range []string{headHeader, "Content-Length"} {
		r.Header.Del(name)
	}
	if err := s.carry(a, r, head); err != nil {
		a.refuse(err.Error())
	}
	a.WriteHeader(http.StatusOK) // if the handler has not
}

// Do carries out a request of this process, and writes the answer to w. An error, which wraps [ErrRefused],
// means that it did not. If the answer breaks off, Do panics with [http.ErrAbortHandler].
func (s *Server) Do(w http.ResponseWriter, r *http.Request, head Head) error {
	header, err := passed(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	head.Node, head.Method, head.URL = s.id, r.Method, r.URL.RequestURI()
	r = r.WithContext(ctx)
	r.Header = header
	if err := s.carry(w, r, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// headKey is the key of a head in a context.
type headKey struct{}

// HeadOf returns the head of a request, or nil if it does not come from a [Server].
func HeadOf(ctx context.Context) *Head {
	h, _ := ctx.Value(headKey{}).(*Head)
	return h
}

// carry calls the handler. An error means that it has not.
func (s *Server) carry(w http.ResponseWriter, from *http.Request, head *Head) error {
	u, err := url.ParseRequestURI(head.URL)
	if err != nil || !strings.HasPrefix(head.URL, "/") || from.ContentLength < 0 {
		return errors.New("the URL or the length is invalid")
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	ctx, release, err := s.handler.Admit(context.WithValue(from.Context(), headKey{}, head), head)
	if err != nil {
		return err
	}
	defer release()
	// The handler may wait for a client that does not read.
	over, control := make(chan struct{}), http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = control.SetWriteDeadline(time.Now().Add(endTimeout)) // fails if the client has left
	})
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				s.log.Error("a request failed", "error", fmt.Sprint(v))
			}
			defer panic(http.ErrAbortHandler)
		}
		if !stop() { // else it could set the deadline of the next request
			<-over
		}
	}()
	s.handler.ServeHTTP(withoutDeadlines{w}, (&http.Request{
		Method: head.Method, URL: u, RequestURI: head.URL, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost",
		Header: from.Header, ContentLength: from.ContentLength, Body: from.Body, GetBody: from.GetBody,
	}).WithContext(ctx))
	return nil
}

// withoutDeadlines hides the deadlines of an answer from a handler: the client may be slow.
type withoutDeadlines struct{ w http.ResponseWriter }

// Header implements [http.ResponseWriter].
func (w withoutDeadlines) Header() http.Header { return w.w.Header() }

// WriteHeader implements [http.ResponseWriter].
func (w withoutDeadlines) WriteHeader(status int) {
	if status >= 200 {
		w.w.WriteHeader(status)
	}
}

// Write implements [io.Writer].
func (w withoutDeadlines) Write(p []byte) (int, error) { return w.w.Write(p) }

// FlushError is for [http.ResponseController].
func (w withoutDeadlines) FlushError() error { return http.NewResponseController(w.w).Flush() }

// answer is what goes to a client. Its headers say what has become of the request.
type answer struct {
	http.ResponseWriter
	server *Server
	what   string // "" means carried
	begun  bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.begun = true
	clock, err := json.Marshal(newClock(a.server.started))
	if err != nil { // it has only numbers
		panic(err)
	}
	a.Header().Set(whatHeader, a.what)
	a.Header().Set(clockHeader, string(clock))
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (a *answer) FlushError() error {
	a.WriteHeader(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// refuse says why a request is not carried out.
func (a *answer) refuse(reason string) {
	a.what = refused
	a.WriteHeader(http.StatusMisdirectedRequest)
	_, _ = io.WriteString(a, reason[:min(len(reason), maxReason)]) // only for the log
}
