package mcphttp

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"
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
}

// Load returns the current figures.
func (h *Handler) Load() Load {
	busy := h.busy()
	h.mu.Lock()
	defer h.mu.Unlock()
	l := Load{Busy: busy}
	for _, p := range h.principals {
		l.Parked = l.Parked || p.own.Parked()
		l.Requests += p.open
		l.Sessions += len(p.sessions)
	}
	return l
}

// answer is a response that collects what to log about it.
type answer struct {
	http.ResponseWriter
	principal string // "" for a request that was refused before it was known
	// id and method are those of the message, or method is that of the request if there is none, and tool is the name in
	// a tools/call. They come from the client. Each is "invalid" if it is not a short word.
	id, method, tool string
	status           int // 200 for a stream, even if it contained an error
	began            time.Time
}

// maxWord is the longest word of a client in a log record, in bytes.
const maxWord = 64

// word returns s if it is a short word, otherwise "invalid": clients must not be able to
// forge log records.
func word(s string) string {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("/_-.:$", r)
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
	a.method = "response"
	if e.kind != response {
		a.method = word(e.method)
	}
	if !e.id.IsZero() {
		a.id = word(asText(e.id))
	}
	if e.method == "tools/call" && e.params.Name != nil {
		a.tool = word(*e.params.Name)
	}
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is used by [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// log logs a request. Those that start work or a session or were refused are logged as
// info, others as debug: there are many polls, notifications and streams.
func (h *Handler) log(a *answer) {
	level := slog.LevelDebug
	if a.method == "tools/call" || a.method == "initialize" || a.method == http.MethodDelete ||
		a.status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	h.o.Logger.Log(context.Background(), level, "request", "principal", a.principal, "id", a.id, "method", a.method,
		"tool", a.tool, "status", a.status, "duration", time.Since(a.began))
}
