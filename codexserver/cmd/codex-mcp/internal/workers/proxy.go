package workers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
)

// whoKey is the key of the principal in a request's context.
type whoKey struct{}

// admitted returns the request of a principal.
func admitted(r *http.Request, who streamable.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, who))
}

// newProxy returns what hands requests on to a worker's socket. What the client says of
// who it is and where it comes from stays here.
func newProxy(socket string, log *slog.Logger) *httputil.ReverseProxy {
	var dialer net.Dialer
	return &httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
			// A connection is for one request, so that none is sent twice.
			DisableKeepAlives: true, DisableCompression: true,
		},
		FlushInterval: -1, // a stream's events go out at once
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			who, _ := r.In.Context().Value(whoKey{}).(streamable.Principal)
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Codex-Mcp-") || strings.HasPrefix(name, "X-Forwarded-") {
					delete(r.Out.Header, name)
				}
			}
			for _, name := range []string{"Authorization", "Cookie", "Forwarded", "Origin", "X-Real-Ip"} {
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
			if late := (net.Error)(nil); errors.As(err, &late) && late.Timeout() {
				w.Header().Set("Connection", "close")
				http.Error(w, "the body did not come in time", http.StatusRequestTimeout)
				return
			}
			if r.Context().Err() == nil {
				log.Warn("a request has no answer", "error", err)
			}
			http.Error(w, "what worked for you has ended; it starts again with the next request", http.StatusBadGateway)
		},
	}
}

// patience is how long a client may take to send a message, or to take what is written.
const patience = time.Minute

// patient is a response whose client has a time for each write, but none for the whole.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

// newPatient returns the response of a request, whose body must come in time. What has
// come whole may be answered late.
func newPatient(w http.ResponseWriter, r *http.Request) *patient {
	p := &patient{w, http.NewResponseController(w)}
	p.extend()
	if r.ContentLength == 0 {
		_ = p.control.SetReadDeadline(time.Time{}) // a stream may last
		return p
	}
	_ = p.control.SetReadDeadline(time.Now().Add(patience))
	r.Body = &wholeBody{r.Body, func() { _ = p.control.SetReadDeadline(time.Time{}) }}
	return p
}

// extend begins the time of a write. Where there are no deadlines the server's own hold.
func (p *patient) extend() { _ = p.control.SetWriteDeadline(time.Now().Add(patience)) }

// Write implements [io.Writer].
func (p *patient) Write(b []byte) (int, error) {
	p.extend()
	return p.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (p *patient) FlushError() error {
	p.extend()
	return p.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// wholeBody says when the body has come to its end.
type wholeBody struct {
	io.ReadCloser
	whole func()
}

// Read implements [io.Reader].
func (b *wholeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.whole()
	}
	return n, err
}
