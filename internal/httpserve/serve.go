package httpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"time"
)

// The limits of a server.
const (
	// HeaderTimeout bounds how long a client takes for the headers of a request.
	HeaderTimeout = 10 * time.Second
	// MaxHeader bounds the headers of a request, in bytes.
	MaxHeader = 64 << 10
	// readTimeout bounds how long a client takes for a whole request, if its handler does
	// not set a deadline.
	readTimeout = time.Minute
	// keepAlive is how long an idle connection stays open.
	keepAlive = 2 * time.Minute
	// shutdownTimeout bounds how long the server answers its last requests.
	shutdownTimeout = time.Second
	// maxConnections bounds the open connections. Further ones wait.
	maxConnections = 2048
)

// Backend does the work of requests.
type Backend interface {
	// Drain waits until the running work has ended. From then on no work begins.
	Drain(context.Context) error
	// Close ends the work.
	Close() error
}

// Server serves a handler until its end. All fields except Check are required.
type Server struct {
	*Flags
	// Mux has the handlers. [Server.Serve] adds /healthz and /readyz.
	Mux *http.ServeMux
	// Backend does the work of the handlers. [Server.Serve] closes it.
	Backend Backend
	// Check fails if new work would fail, so that /readyz says why. It must not wait. It may be
	// nil.
	Check func() error
	// Drain is how long work in progress may continue after a signal.
	Drain time.Duration
	// Signals end the server.
	Signals []os.Signal
	// Ready is called when the server listens. [Flags].Listen then has the real port.
	Ready func()
	// Logger receives faults of connections.
	Logger *slog.Logger
}

// Serve serves until a signal arrives or ctx ends. After a signal it drains the backend,
// until its work ends, the time for that expires, or a second signal arrives.
func (s *Server) Serve(ctx context.Context) error {
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return errors.Join(err, s.Backend.Close())
	}
	s.Listen = l.Addr().String()
	// From here on a signal ends the server, and does not kill it: others may know the address.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, s.Signals...)
	defer signal.Stop(signals)
	var draining atomic.Bool
	server := newServer(onlyFrom(s.Proxy, withHealth(s.Mux, &draining, s.Check)), s.Logger)
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(Limit(l, maxConnections)) }()
	s.Ready()
	select {
	case err = <-serving:
	case <-ctx.Done():
	case <-signals:
		draining.Store(true)
		s.drain(ctx, signals)
	}
	err = errors.Join(err, s.Backend.Close(), shutDown(server))
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// newServer returns the server for a handler. It has no WriteTimeout, because the handler's
// streams set their own deadlines.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: HeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: keepAlive,
		MaxHeaderBytes: MaxHeader,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutDown closes a server whose backend is closed. It first answers the requests that have
// arrived, so that a proxy can send them to another server. If their connections broke, the
// proxy could not know whether they had begun.
func shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	return server.Close()
}

// drain waits for the work in progress. Another signal ends the wait. Closing the backend
// interrupts the work that has not ended.
func (s *Server) drain(ctx context.Context, signals <-chan os.Signal) {
	ctx, cancel := context.WithTimeout(ctx, s.Drain)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Backend.Drain(ctx) }()
	select {
	case <-ended:
	case <-signals:
		cancel()
		<-ended
	}
}

// withHealth adds /healthz and /readyz to m.
func withHealth(m *http.ServeMux, draining *atomic.Bool, check func() error) http.Handler {
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		if check != nil {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
	return m
}

// onlyFrom refuses requests that do not come from the proxy. If proxy is "", it returns h.
func onlyFrom(proxy string, h http.Handler) http.Handler {
	if proxy == "" {
		return h
	}
	ip := net.ParseIP(proxy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil || !net.ParseIP(host).Equal(ip) {
			http.Error(w, "connect through the proxy of this server", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
