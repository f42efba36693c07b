package workers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
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

// passed are the headers of an answer that clients get.
var passed = []string{
	"Allow", "Cache-Control", "Content-Length", "Content-Type", "Date", "Mcp-Session-Id", "Retry-After", "Www-Authenticate", "X-Accel-Buffering", "X-Content-Type-Options",
}

// challenger writes the challenges of a server.
type challenger struct {
	scheme   string // with the realm
	metadata string // URL of the server's metadata as an OAuth resource, "" without
}

var scopeParameter = regexp.MustCompile(`[ ,]scope="([^"]*)"`)

// rewrite returns the challenge of a 403 for the scopes that a worker's challenge names. It
// takes nothing else from the worker, which could name another authorization server. Without
// scopes it returns "".
func (c challenger) rewrite(from string) string {
	found := scopeParameter.FindStringSubmatch(from)
	if found == nil {
		return ""
	}
	scopes := streamable.FormatScopes(streamable.ParseScopes(found[1]))
	if scopes == "" {
		return ""
	}
	text := c.scheme + `, error="insufficient_scope", scope="` + scopes + `"`
	if c.metadata != "" {
		text += `, resource_metadata="` + c.metadata + `"`
	}
	return text
}

// vet leaves out what no worker sends, unless something has taken it over: an answer that
// sends a client, perhaps the approver's, to sign in elsewhere, or that stays in a browser.
func (c challenger) vet(r *http.Response) error {
	for name := range r.Header {
		if !slices.Contains(passed, name) {
			delete(r.Header, name)
		}
	}
	challenge := c.rewrite(r.Header.Get("Www-Authenticate"))
	r.Header.Del("Www-Authenticate")
	switch {
	case r.StatusCode >= 200 && r.StatusCode < 300:
		return nil
	case r.StatusCode == http.StatusForbidden && challenge != "":
		r.Header.Set("Www-Authenticate", challenge)
		return nil
	case r.StatusCode >= 400 && r.StatusCode < 600 && r.StatusCode != http.StatusUnauthorized && r.StatusCode != http.StatusProxyAuthRequired:
		return nil
	}
	return fmt.Errorf("a worker answers with %s", r.Status)
}

// newProxy returns a proxy to a worker. The headers in which a client says who it is and
// where it comes from are not handed on.
func newProxy(log *slog.Logger, c challenger) *httputil.ReverseProxy {
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
		ModifyResponse: c.vet,
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
