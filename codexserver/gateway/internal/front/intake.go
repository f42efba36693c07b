package front

import (
	"net/http"
	"time"
)

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
	_ = a.control.SetReadDeadline(time.Now().Add(clientTimeout))
	return a
}

// extend restarts the timeout for writes. If the connection does not support deadlines,
// those of the HTTP server apply.
func (a *answer) extend() { _ = a.control.SetWriteDeadline(time.Now().Add(clientTimeout)) }

// received lets the answer take longer than the body, which has arrived.
func (a *answer) received() { _ = a.control.SetReadDeadline(time.Time{}) }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.extend()
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
