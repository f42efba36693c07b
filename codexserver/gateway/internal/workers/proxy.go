package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// admission is a value in the context of each admitted request: its principal, and the
// connection to the worker, which is nil after the request was sent. Then it has what becomes
// of the request: whether the worker answers, and the method that the answer names.
type admission struct {
	principal mcphttp.Principal
	conn      *connection
	answered  bool
	method    string
}

// admissionKey is the key of an admission in a context.
type admissionKey struct{}

// with returns the request with the admission in its context.
func (a *admission) with(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), admissionKey{}, a))
}

// answerHeaders are the headers of an answer that the proxy passes to clients.
var answerHeaders = []string{
	"Allow", "Cache-Control", "Content-Length", "Content-Type", "Date", "Mcp-Session-Id", "Retry-After", "Www-Authenticate", "X-Accel-Buffering", "X-Content-Type-Options",
}

// challenger writes the WWW-Authenticate challenges of a server.
type challenger struct {
	scheme   string // with the realm
	metadata string // URL of the server's metadata as an OAuth resource, or ""
}

var scopeParameter = regexp.MustCompile(`[ ,]scope="([^"]*)"`)

// rewrite returns the challenge of a 403 for the scopes in a worker's challenge, or "" if
// there are no scopes. It ignores the rest of the worker's challenge, which could name
// another authorization server.
func (c challenger) rewrite(from string) string {
	found := scopeParameter.FindStringSubmatch(from)
	if found == nil {
		return ""
	}
	scopes := mcphttp.FormatScopes(mcphttp.ParseScopes(found[1]))
	if scopes == "" {
		return ""
	}
	text := c.scheme + `, error="insufficient_scope", scope="` + scopes + `"`
	if c.metadata != "" {
		text += `, resource_metadata="` + c.metadata + `"`
	}
	return text
}

// checkAnswer removes the headers that clients do not need, and fails for a status that
// they do not need. Only a worker that was taken over sends those: they could make the
// client of the user sign in at another server, or leave state in a
// browser.
func (c challenger) checkAnswer(r *http.Response) error {
	for name := range r.Header {
		if !slices.Contains(answerHeaders, name) {
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
	return fmt.Errorf("the worker sent the status %s, which is not passed to clients", r.Status)
}

// UnansweredText is for a client whose request was sent to a worker.
const UnansweredText = "the user's worker process did not answer this request. The request may have taken effect; " +
	"check that before you send it again. If the process has ended, the next request starts it again"

// newProxy returns a proxy to a worker. The proxy removes the headers in which a client
// identifies itself or its address.
func newProxy(log *slog.Logger, c challenger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport{}, // the proxy sends the events of a stream immediately
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			var principal mcphttp.Principal
			if a, ok := r.In.Context().Value(admissionKey{}).(*admission); ok {
				principal = a.principal
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
			r.Out.Header.Set(workerlink.PrincipalHeader, principal.Name)
			scopes := principal.Scopes
			if scopes == nil {
				scopes = mcphttp.Scopes()
			}
			r.Out.Header.Set(workerlink.ScopesHeader, mcphttp.FormatScopes(scopes))
		},
		ModifyResponse: func(r *http.Response) error {
			method := r.Header.Get(workerlink.MethodHeader)
			err := c.checkAnswer(r)
			if a, ok := r.Request.Context().Value(admissionKey{}).(*admission); ok && err == nil {
				a.answered, a.method = true, method
			}
			return err
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.Warn("worker did not answer a request", "error", err)
			}
			if errors.Is(err, errUnwritten) {
				unavailable(w)
				return
			}
			http.Error(w, UnansweredText, http.StatusBadGateway)
		},
	}
}
