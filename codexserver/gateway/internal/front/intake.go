package front

import (
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// usage is what one user has open. It is safe for concurrent use.
type usage struct {
	requests chan struct{} // holds a token for each open request
	bodies   *mcphttp.Bodies
}

// The limits for each user. They are those of a worker, see [mcphttp.Options].
const (
	maxOpen = 256      // requests
	maxBody = 64 << 20 // bytes
)

func newUsage() *usage { return &usage{make(chan struct{}, maxOpen), mcphttp.NewBodies(maxBody)} }

// begin counts a request until end is called. If the user has too many open requests, it
// answers this one, and ok is false.
func (u *usage) begin(w http.ResponseWriter) (end func(), ok bool) {
	select {
	case u.requests <- struct{}{}:
		return func() { <-u.requests }, true
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many of your requests are open; send this one again when another has ended", http.StatusTooManyRequests)
		return nil, false
	}
}

// clientTimeout limits how long a client may take to send a message, and how long each
// write to the client may take.
const clientTimeout = time.Minute

// answer is a response with a timeout for each write, but not for all of them
// together.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int // 0 before WriteHeader
}

// newAnswer returns the response to a request. Its body has to arrive in time.
func newAnswer(w http.ResponseWriter) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w)}
	a.extend()
	_ = a.control.SetReadDeadline(time.Now().Add(clientTimeout))
	return a
}

// extend restarts the timeout for writes. If the connection does not support deadlines,
// those of the HTTP server apply.
func (a *answer) extend() { _ = a.control.SetWriteDeadline(time.Now().Add(clientTimeout)) }

// received lets the answer take longer than the body, which has arrived.
func (a *answer) received() {
	a.extend() // reading the body may have used up the timeout
	_ = a.control.SetReadDeadline(time.Time{})
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (a *answer) Write(b []byte) (int, error) {
	a.extend()
	return a.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (a *answer) FlushError() error {
	a.extend()
	return a.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
