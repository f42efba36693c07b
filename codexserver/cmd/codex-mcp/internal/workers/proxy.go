package workers

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

// passage is what a request that was admitted has in its context: whose it is, and the
// connection to the worker.
type passage struct {
	who  streamable.Principal
	conn net.Conn
}

// passageKey is its key.
type passageKey struct{}

// admitted returns the request of a principal, to be sent over a connection.
func admitted(r *http.Request, who streamable.Principal, conn net.Conn) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), passageKey{}, &passage{who, conn}))
}

// newProxy returns what hands requests on to a worker. What the client says of who it is
// and where it comes from stays here.
func newProxy(log *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     transport{},
		FlushInterval: -1, // a stream's events go out at once
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			var who streamable.Principal
			if p, ok := r.In.Context().Value(passageKey{}).(*passage); ok {
				who = p.who
			}
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Codex-Mcp-") || strings.HasPrefix(name, "X-Forwarded-") {
					delete(r.Out.Header, name)
				}
			}
			for _, name := range []string{"Authorization", "Cookie", "Expect", "Forwarded", "Origin", "X-Real-Ip"} {
				delete(r.Out.Header, name)
			}
			r.Out.Header.Set(principalHeader, who.Name)
			scopes := who.Scopes
			if scopes == nil {
				scopes = streamable.Scopes()
			}
			r.Out.Header.Set(scopesHeader, streamable.FormatScopes(scopes))
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if p, ok := w.(*patient); ok {
				p.failed = true
			}
			if r.Context().Err() == nil {
				log.Warn("a request has no answer", "error", err)
			}
			http.Error(w, "what worked for you has ended; it starts again with the next request", http.StatusBadGateway)
		},
	}
}
