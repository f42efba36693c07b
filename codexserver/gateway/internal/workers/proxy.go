package workers

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// call is a request, in its context.
type call struct {
	user    mcphttp.Principal
	changes bool  // it [worker.MakesBusy]
	unsent  error // why the worker could not get it; nil if it could
}

type callKey struct{}

// answerHeaders are the headers of an answer that the proxy passes to clients.
var answerHeaders = []string{
	"Allow", "Cache-Control", "Content-Length", "Content-Type", "Date", "Mcp-Session-Id", "Retry-After",
	"Www-Authenticate", "X-Accel-Buffering", "X-Content-Type-Options",
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
	challenge := ""
	if from := r.Header.Get("Www-Authenticate"); from != "" {
		challenge = c.rewrite(from)
		r.Header.Del("Www-Authenticate")
	}
	switch {
	case r.StatusCode >= 200 && r.StatusCode < 300:
		return nil
	case r.StatusCode == http.StatusForbidden && challenge != "":
		r.Header.Set("Www-Authenticate", challenge)
		return nil
	case r.StatusCode >= 400 && r.StatusCode < 600 && r.StatusCode != http.StatusUnauthorized &&
		r.StatusCode != http.StatusProxyAuthRequired:
		return nil
	}
	return fmt.Errorf("the worker sent the status %s, which is not passed to clients", r.Status)
}

// UnavailableText is for a client whose request was not sent to a worker.
const UnavailableText = "the user's worker process could not be started or reached, so the request was not carried " +
	"out. " +
	"Send it again later. If this error continues, ask the operator of the server, whose log has the reason"

// UnansweredText is for a client whose request was sent to a worker.
const UnansweredText = "the user's worker process did not answer this request. The request may have taken effect; " +
	"check that before you send it again. If the process has ended, the next request starts it again"

// dialError means that there is no connection, over which a request could have been sent.
type dialError struct{ error }

// notForWorkers are the headers in which a client identifies itself, those that make net/http send a request again, and
// one that lets a worker wait for a body that it may never get.
var notForWorkers = []string{"Authorization", "Cookie", "Expect", "Forwarded", "Idempotency-Key", "Origin",
	"X-Idempotency-Key", "X-Real-Ip"}

// newProxy returns a proxy to a worker. The proxy removes the headers in which a client
// identifies itself or its address. It sends the events of a stream immediately, and no request twice: a request has no
// GetBody, and one without a body changes nothing.
func newProxy(log *slog.Logger, c challenger, to http.RoundTripper, copies httputil.BufferPool) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: withoutTrailers{to}, BufferPool: copies, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			principal := r.In.Context().Value(callKey{}).(*call).user
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			r.Out.GetBody = nil
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Codex-Mcp-") || strings.HasPrefix(name, "X-Forwarded-") {
					delete(r.Out.Header, name)
				}
			}
			for _, name := range notForWorkers {
				delete(r.Out.Header, name)
			}
			r.Out.Header.Set(worker.PrincipalHeader, principal.Name)
			scopes := principal.Scopes
			if scopes == nil {
				scopes = mcphttp.Scopes()
			}
			r.Out.Header.Set(worker.ScopesHeader, mcphttp.FormatScopes(scopes))
		},
		ModifyResponse: c.checkAnswer,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if never := (dialError{}); errors.As(err, &never) {
				r.Context().Value(callKey{}).(*call).unsent = err
				return
			}
			if r.Context().Err() == nil {
				log.Warn("worker did not answer a request", "error", err)
			}
			http.Error(w, UnansweredText, http.StatusBadGateway)
		},
	}
}

// withoutTrailers drops the trailers of answers, which nobody could look at before they are passed on.
type withoutTrailers struct{ to http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t withoutTrailers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	other := *answer // the body writes the trailers into the first one
	other.Trailer = nil
	return &other, nil
}

// bufferSize is the size of a buffer for copying answers, in bytes.
const bufferSize = 32 << 10

// buffers are used by one answer after another. The zero value is ready to use. It is an [httputil.BufferPool].
type buffers struct{ unused sync.Pool }

// Get returns a buffer, which may have the bytes of another answer.
func (b *buffers) Get() []byte {
	if p, ok := b.unused.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back.
func (b *buffers) Put(p []byte) { b.unused.Put((*[bufferSize]byte)(p)) }
