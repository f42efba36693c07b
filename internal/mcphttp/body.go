package mcphttp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	// longBody is the size in bytes from which a message counts as long.
	longBody = 1 << 20
	// maxLarge is how many long messages may be in memory at the same time.
	maxLarge = 4
)

// read reads the message of a POST. If that fails, read has answered the request and ok is
// false. A long message counts against maxLarge until release is called.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), ok bool) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return nil, nil, false
	}
	if r.Header.Get("Content-Encoding") != "" {
		refuse(w, http.StatusUnsupportedMediaType, "want a body without Content-Encoding")
		return nil, nil, false
	}
	if body, release, ok = h.bodies.Read(w, r); ok {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the deadline was for the body only
	}
	return body, release, ok
}

// Bodies reads the bodies of requests into memory, and few long ones at a time. It is safe for concurrent use.
type Bodies struct {
	most  int
	large chan struct{} // holds a token for each long body
}

// NewBodies returns a reader of bodies of at most so many bytes.
func NewBodies(most int) *Bodies { return &Bodies{most, make(chan struct{}, maxLarge)} }

// Read reads the whole body of a request. If that fails, Read has answered the request and ok is
// false. A long body counts against the others until release is called.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), ok bool) {
	if r.ContentLength > int64(b.most) {
		b.tooLong(w)
		return nil, nil, false
	}
	release = func() {}
	var read bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, int64(b.most))
	_, err := io.CopyN(&read, in, longBody)
	if err == nil {
		select {
		case b.large <- struct{}{}:
			release = func() { <-b.large }
		default:
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusTooManyRequests, "too many long messages at the same time")
			return nil, nil, false
		}
		if r.ContentLength > longBody {
			read.Grow(int(r.ContentLength) - read.Len() + bytes.MinRead)
		}
		_, err = io.Copy(&read, in)
	}
	var long *http.MaxBytesError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return read.Bytes(), release, true
	case errors.As(err, &long):
		b.tooLong(w)
	default:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, "the body did not arrive in time")
	}
	release()
	return nil, nil, false
}

func (b *Bodies) tooLong(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	fail(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{},
		jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "message is longer than %d bytes", b.most))
}
