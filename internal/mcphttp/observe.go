package mcphttp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Load is the number of open requests and sessions of a [Handler].
type Load struct {
	// Requests is the number of HTTP requests being served, Sessions the number of
	// sessions that have not ended.
	Requests, Sessions int
	// Busy reports that turns or calls are running, which may outlive their requests.
	Busy bool
	// Parked reports that a call has asked its client, which comes back to this process with the answer.
	Parked bool
	// Draining reports that the handler accepts no new work.
	Draining bool
}

// Load returns the current figures.
func (h *Handler) Load() Load {
	busy := h.busy()
	h.mu.Lock()
	defer h.mu.Unlock()
	l := Load{Busy: busy, Draining: h.draining}
	for _, p := range h.principals {
		if parks, ok := p.own.(parks); ok && parks.Parked() {
			l.Parked = true
		}
		l.Requests += p.open
		l.Sessions += len(p.sessions)
	}
	return l
}

// record describes an HTTP request that has been answered, for the log.
type record struct {
	// principal is the name of the request's principal, "" for a request that was refused
	// before the principal was known.
	principal string
	// session is the start of the SHA-256 of the session's id, "" without a session. It
	// identifies the session in a log, but is not a key to it.
	session string
	// id is that of the MCP request, "" without one.
	id string
	// method is the method of the message in a POST, "" if it could not be read. For
	// other requests it is GET or DELETE.
	method string
	// tool is the name in a tools/call. tool, id and method come from the client. Each
	// is "invalid" if it is not a short word.
	tool string
	// status is the HTTP status. For a stream it is 200 even if the stream contained an
	// error.
	status int
}

// answer is a response that collects what to log about it.
type answer struct {
	http.ResponseWriter
	about record
	began time.Time
}

func (h *Handler) newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	a := &answer{ResponseWriter: w, began: time.Now()}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		a.noteMethod(r.Method)
	}
	a.about.session = hashed(r.Header.Get(headerSession))
	return a
}

func (a *answer) noteMethod(method string) { a.about.method = method }

// hashed returns the start of the SHA-256 of a session's id.
func hashed(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}

// maxWord is the longest word of a client in a log record, in bytes.
const maxWord = 64

// word returns s if it is a short word, otherwise "invalid": clients must not be able to
// forge log records.
func word(s string) string {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/_-.:$", r)
	}
	if len(s) > maxWord || strings.ContainsFunc(s, strange) {
		return "invalid"
	}
	return s
}

// noteMessage records the message that w answers.
func noteMessage(w http.ResponseWriter, e *envelope) {
	a, ok := w.(*answer)
	if !ok {
		return
	}
	if e.kind == response {
		a.noteMethod("response")
	} else {
		a.noteMethod(word(e.method))
	}
	if !e.id.IsZero() {
		a.about.id = word(asText(e.id))
	}
	if e.method == "tools/call" && e.params.Name != nil {
		a.about.tool = word(*e.params.Name)
	}
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.about.status == 0 {
		a.about.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	if a.about.status == 0 {
		a.about.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is used by [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// log logs a request. Those that start work or a session or were refused are logged as
// info, others as debug: there are many polls, notifications and streams.
func (h *Handler) log(a *answer) {
	s := a.about
	if s.session == "" {
		s.session = hashed(a.Header().Get(headerSession)) // of initialize
	}
	level := slog.LevelDebug
	if s.method == "tools/call" || s.method == "initialize" || s.method == http.MethodDelete || s.status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	h.o.Logger.Log(context.Background(), level, "request", "principal", s.principal, "session", s.session, "id", s.id,
		"method", s.method, "tool", s.tool, "status", s.status, "duration", time.Since(a.began))
}

// RequestContext returns the context of the POST with an MCP request. Package codexserver
// traces requests with it.
func (x *exchange) RequestContext(jsonrpc.ID) context.Context { return x.post }

// RequestContext returns the context of the POST with an MCP request, as for an exchange.
func (s *session) RequestContext(id jsonrpc.ID) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.requests[id]; one != nil {
		return one.stream.post
	}
	return context.Background()
}
