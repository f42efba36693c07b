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
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/httpserve"
)

// Handler carries out the requests of a [Server].
type Handler interface {
	// Admit decides whether a request is carried out. It waits for nothing but the lease of the user. The context that it
	// returns is that of the request: it derives from ctx. When it ends, so does the request. The server calls
	// release when the request has ended. An error refuses the request, and its text is for the log of the front.
	Admit(ctx context.Context, h Head) (admitted context.Context, release func(), err error)
	// Serve carries out an admitted request.
	Serve(w http.ResponseWriter, r *http.Request, h Head)
}

// Server receives requests. It is safe for concurrent use.
type Server struct {
	id      string
	handler Handler
	log     *slog.Logger
	ctx     context.Context // ends all requests
	stop    context.CancelFunc
	http    *http.Server

	running sync.WaitGroup // requests, and what accepts connections
	mu      sync.Mutex
	closed  bool
}

const (
	// maxConnections bounds the connections to a server.
	maxConnections = 1024
	// endTimeout bounds how long a request that has to end may say why.
	endTimeout = time.Second
)

// NewServer returns a server, which only [Server.Do] reaches. The caller must close it.
func NewServer(h Handler, log *slog.Logger) *Server {
	s := &Server{id: rand.Text(), handler: h, log: log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	protocols, config := http2()
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.receive), Protocols: protocols, HTTP2: config, MaxHeaderBytes: 2 * maxHead,
		ReadHeaderTimeout: lostAfter, IdleTimeout: 2 * idleTimeout,
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
	s.http.TLSConfig = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return certificates.config()
		}}
	s.running.Go(func() {
		if err := s.http.ServeTLS(httpserve.Limit(l, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("fronts cannot connect any more", "error", err)
		}
	})
}

// ID returns the id by which fronts know the server. It is new for each server.
func (s *Server) ID() string { return s.id }

// Close refuses further requests, and waits for the ends of all others. When ctx ends it cancels them.
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

// receive handles what comes from a connection.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "the client is not verified", http.StatusForbidden)
		return
	}
	head, err := parse(r.Header)
	if err == nil && head.Node != s.id {
		err = errors.New("another process has this address")
	}
	if err == nil {
		err = s.Do(w, r, head)
	}
	if err != nil {
		w.Header().Set(headHeader, refused)
		w.WriteHeader(http.StatusMisdirectedRequest)
		reason := err.Error()
		_, _ = io.WriteString(w, reason[:min(len(reason), maxReason)]) // only for the log
	}
}

// Do carries out a request, and writes the answer to w. An error, which wraps [ErrRefused],
// means that it did not. If the answer breaks off, Do panics with [http.ErrAbortHandler].
func (s *Server) Do(w http.ResponseWriter, r *http.Request, head Head) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("%w: the node ends", ErrRefused)
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	ctx, release, err := s.handler.Admit(ctx, head)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
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
	s.handler.Serve(final{w}, r.WithContext(ctx), head)
	return nil
}

// final passes the final answer of a handler on, and none before it, which nobody has looked at. The handler cannot say that the
// request was not carried out.
type final struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (f final) WriteHeader(status int) {
	if status >= http.StatusOK {
		f.Header().Del(headHeader)
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for [http.ResponseController].
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
