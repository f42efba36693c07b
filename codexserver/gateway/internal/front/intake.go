package front

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// usage counts what one user has open. It is safe for concurrent use.
type usage struct {
	requests chan struct{} // holds a token for each open request
	large    chan struct{} // holds a token for each long body
}

// The limits for each user. They are those of a worker, see [mcphttp.Options].
const (
	maxOpen  = 256      // requests
	maxBody  = 64 << 20 // bytes
	longBody = 1 << 20  // the size in bytes from which a body counts as long
	maxLarge = 4        // long bodies in memory at the same time
)

func newUsage() *usage { return &usage{make(chan struct{}, maxOpen), make(chan struct{}, maxLarge)} }

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

// readBody reads the whole body of a request into memory, because a node may refuse the request, and another one gets it
// then. If that fails, readBody has answered the request and ok is
// false. A long body counts against maxLarge until release is called.
func (u *usage) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), ok bool) {
	release = func() {}
	refuse := func(status int, message string) ([]byte, func(), bool) {
		release()
		w.Header().Set("Connection", "close")
		http.Error(w, message, status)
		return nil, nil, false
	}
	tooLong := fmt.Sprintf("message is longer than %d bytes", maxBody)
	if r.ContentLength > maxBody {
		return refuse(http.StatusRequestEntityTooLarge, tooLong)
	}
	var b bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, maxBody)
	_, err := io.CopyN(&b, in, longBody)
	if err == nil {
		select {
		case u.large <- struct{}{}:
			release = func() { <-u.large }
		default:
			w.Header().Set("Retry-After", "1")
			return refuse(http.StatusTooManyRequests, "too many long messages at the same time; send this one again later")
		}
		if r.ContentLength > longBody {
			b.Grow(int(r.ContentLength) - b.Len() + bytes.MinRead)
		}
		_, err = io.Copy(&b, in)
	}
	var long *http.MaxBytesError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return b.Bytes(), release, true
	case errors.As(err, &long):
		return refuse(http.StatusRequestEntityTooLarge, tooLong)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time; send the request again")
	}
	return refuse(http.StatusBadRequest, "the body could not be read to its end; send the request again")
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

// newAnswer returns the response to a request. It sets a read deadline that ends
// when the whole body has arrived, so that the answer may take longer.
func newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	a := &answer{ResponseWriter: w, control: http.NewResponseController(w)}
	a.extend()
	if r.ContentLength == 0 {
		_ = a.control.SetReadDeadline(time.Time{}) // a stream can stay open
		return a
	}
	_ = a.control.SetReadDeadline(time.Now().Add(clientTimeout))
	r.Body = &observedBody{r.Body, func() { _ = a.control.SetReadDeadline(time.Time{}) }}
	return a
}

// extend restarts the timeout for writes. If the connection does not support deadlines,
// those of the HTTP server apply.
func (a *answer) extend() { _ = a.control.SetWriteDeadline(time.Now().Add(clientTimeout)) }

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
