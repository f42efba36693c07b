package workers

import (
	"errors"
	"io"
	"net/http"
	"time"
)

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
