package intake

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// clientTimeout limits how long a client may take to send a message, and how long each
// write to the client may take.
const clientTimeout = time.Minute

// Response is a response with a timeout for each write, but not for all of them
// together.
type Response struct {
	http.ResponseWriter
	control *http.ResponseController
	// Status is the status of the answer, or 0 before WriteHeader.
	Status int
}

// NewResponse returns the response to a request. It sets a read deadline that ends
// when the whole body has arrived, so that the answer may take longer.
func NewResponse(w http.ResponseWriter, r *http.Request) *Response {
	t := &Response{ResponseWriter: w, control: http.NewResponseController(w)}
	t.Extend()
	if r.ContentLength == 0 {
		_ = t.control.SetReadDeadline(time.Time{}) // a stream can stay open
		return t
	}
	_ = t.control.SetReadDeadline(time.Now().Add(clientTimeout))
	r.Body = &observedBody{r.Body, func() { _ = t.control.SetReadDeadline(time.Time{}) }}
	return t
}

// Extend restarts the timeout for writes. If the connection does not support deadlines,
// those of the HTTP server apply.
func (t *Response) Extend() { _ = t.control.SetWriteDeadline(time.Now().Add(clientTimeout)) }

// WriteHeader implements [http.ResponseWriter].
func (t *Response) WriteHeader(status int) {
	t.Status = status
	t.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (t *Response) Write(b []byte) (int, error) {
	t.Extend()
	return t.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (t *Response) FlushError() error {
	t.Extend()
	return t.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (t *Response) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// observedBody calls atEnd when the whole body has been read.
type observedBody struct {
	io.ReadCloser
	atEnd func()
}

// Read implements [io.Reader].
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.atEnd()
	}
	return n, err
}
