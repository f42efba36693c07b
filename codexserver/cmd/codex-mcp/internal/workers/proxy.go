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

var errNoPassage = errors.New("a request that was not admitted, or is sent again")

// dial returns the connection of a request, once, so that none is sent twice.
func dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p, ok := ctx.Value(passageKey{}).(*passage)
	if !ok || p.conn == nil {
		return nil, errNoPassage
	}
	conn := p.conn
	p.conn = nil
	return conn, nil
}

// newProxy returns what hands requests on to a worker. What the client says of who it is
// and where it comes from stays here.
func newProxy(log *slog.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true},
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
			if p, ok := w.(*patient); ok {
				p.failed = true
			}
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
	status  int  // 0 before there is one
	failed  bool // no worker has answered
}

// newPatient returns the response of a request, whose body must come in time. What has
// come whole may be answered late.
func newPatient(w http.ResponseWriter, r *http.Request) *patient {
	p := &patient{ResponseWriter: w, control: http.NewResponseController(w)}
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

// WriteHeader implements [http.ResponseWriter].
func (p *patient) WriteHeader(status int) {
	p.status = status
	p.ResponseWriter.WriteHeader(status)
}

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
