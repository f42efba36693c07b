package streamable

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

// Report is about an HTTP request that has been answered.
type Report struct {
	// Principal is whose request it was, "" for one that was refused before that was
	// known.
	Principal string
	// Session is the start of the SHA-256 of the session's id, which says which
	// session it was and opens none; "" without one.
	Session string
	// ID is the id of the MCP request, "" without one.
	ID string
	// Method is the method of MCP: of a POST what the message names, GET or DELETE
	// of a session's other requests, "" for what could not be read.
	Method string
	// Tool is the name that a tools/call has. It, ID and Method are what the client
	// wrote where that is a short word, else "invalid".
	Tool string
	// Status is that of HTTP. Of a stream it is 200, whatever the stream said.
	Status int
	// Duration is the time from the headers to the end of the answer.
	Duration time.Duration
}

// Load is what a [Handler] has open.
type Load struct {
	// Requests are the HTTP requests that are not answered to their end, Sessions
	// the sessions that have not ended.
	Requests, Sessions int
	// Busy says that turns or calls are under way, which may outlive their requests.
	Busy bool
	// Draining says that nothing new may begin.
	Draining bool
}

// Load returns what is open now.
func (h *Handler) Load() Load {
	busy := h.busy()
	h.mu.Lock()
	defer h.mu.Unlock()
	l := Load{Busy: busy, Draining: h.draining}
	for _, p := range h.principals {
		l.Requests += p.open
		l.Sessions += len(p.sessions)
	}
	return l
}

// answer is a response that knows what it answers.
type answer struct {
	http.ResponseWriter
	about Report
	began time.Time
}

func newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	a := &answer{ResponseWriter: w, began: time.Now()}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		a.about.Method = r.Method
	}
	a.about.Session = hashed(r.Header.Get(headerSession))
	return a
}

// hashed is enough of a session's id to know it again.
func hashed(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}

// maxWord bounds a word of a client's in a line of the log, in bytes.
const maxWord = 64

// word returns s if it is a short word.
func word(s string) string {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/_-.:$", r)
	}
	if len(s) > maxWord || strings.ContainsFunc(s, strange) {
		return "invalid"
	}
	return s
}

// noteMessage notes the message that w answers.
func noteMessage(w http.ResponseWriter, e *envelope) {
	a, ok := w.(*answer)
	if !ok {
		return
	}
	a.about.Method = word(e.method)
	if e.kind == response {
		a.about.Method = "response"
	}
	if !e.id.IsZero() {
		a.about.ID = word(asText(e.id))
	}
	if e.method == "tools/call" && e.params.Name != nil {
		a.about.Tool = word(*e.params.Name)
	}
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.about.Status == 0 {
		a.about.Status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	if a.about.Status == 0 {
		a.about.Status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// report reports the answer. What begins work or a session, and what was refused, is
// logged as info; polls, notifications and streams are many.
func (h *Handler) report(a *answer) {
	s := a.about
	s.Duration = time.Since(a.began)
	if s.Session == "" {
		s.Session = hashed(a.Header().Get(headerSession)) // of initialize
	}
	if h.o.Report != nil {
		h.o.Report(s)
	}
	level := slog.LevelDebug
	if s.Method == "tools/call" || s.Method == "initialize" || s.Method == http.MethodDelete || s.Status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	h.o.Logger.Log(context.Background(), level, "request", "principal", s.Principal, "session", s.Session, "id", s.ID,
		"method", s.Method, "tool", s.Tool, "status", s.Status, "duration", s.Duration)
}

// RequestContext returns the context of the HTTP request that brought an MCP request.
func (x *exchange) RequestContext(jsonrpc.ID) context.Context { return x.came }

// RequestContext returns the context of the HTTP request that brought an MCP request.
func (s *session) RequestContext(id jsonrpc.ID) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.requests[id]; st != nil {
		return st.came
	}
	return context.Background()
}
