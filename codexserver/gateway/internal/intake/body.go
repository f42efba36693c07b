// Package intake bounds what the requests of a user may take: open requests, memory and time.
package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Usage counts what one user has open. It is safe for concurrent use.
type Usage struct {
	requests chan struct{} // holds a token for each open request
	large    chan struct{} // holds a token for each long body
}

// The limits for each user. They are those of a worker, see [mcphttp.Options].
const (
	maxOpen  = 256      // requests
	MaxBody  = 64 << 20 // bytes
	LongBody = 1 << 20  // the size in bytes from which a body counts as long
	maxLarge = 4        // long bodies in memory at the same time
)

// NewUsage returns the usage of a user who has nothing open.
func NewUsage() *Usage { return &Usage{make(chan struct{}, maxOpen), make(chan struct{}, maxLarge)} }

// Begin counts a request until end is called. If the user has too many open requests, it
// answers this one, and ok is false.
func (u *Usage) Begin(w http.ResponseWriter) (end func(), ok bool) {
	select {
	case u.requests <- struct{}{}:
		return func() { <-u.requests }, true
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many of your requests are open; send this one again when another has ended", http.StatusTooManyRequests)
		return nil, false
	}
}

// ReadBody reads the whole body of a request into memory, because a worker may answer
// before it has read the body. If that fails, ReadBody has answered the request and ok is
// false. A long body counts against maxLarge until release is called. GetBody of the request then
// returns the body again. The body of a request that has GetBody is in memory already, and only counts.
func (u *Usage) ReadBody(w http.ResponseWriter, r *http.Request) (release func(), ok bool) {
	release = func() {}
	refuse := func(status int, message string) (func(), bool) {
		release()
		w.Header().Set("Connection", "close")
		http.Error(w, message, status)
		return nil, false
	}
	tooLong := fmt.Sprintf("message is longer than %d bytes", MaxBody)
	if r.ContentLength > MaxBody {
		return refuse(http.StatusRequestEntityTooLarge, tooLong)
	}
	hold := func() bool {
		select {
		case u.large <- struct{}{}:
			release = func() { <-u.large }
			return true
		default:
			w.Header().Set("Retry-After", "1")
			_, ok := refuse(http.StatusTooManyRequests, "too many long messages at the same time; send this one again later")
			return ok
		}
	}
	if r.GetBody != nil {
		ok = r.ContentLength < LongBody || hold()
		return release, ok
	}
	var b bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, MaxBody)
	_, err := io.CopyN(&b, in, LongBody)
	if err == nil {
		if !hold() {
			return nil, false
		}
		if r.ContentLength > LongBody {
			b.Grow(int(r.ContentLength) - b.Len() + bytes.MinRead)
		}
		_, err = io.Copy(&b, in)
	}
	var long *http.MaxBytesError
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.As(err, &long):
		return refuse(http.StatusRequestEntityTooLarge, tooLong)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time; send the request again")
	default:
		return refuse(http.StatusBadRequest, "the body could not be read to its end; send the request again")
	}
	r.GetBody = func() (io.ReadCloser, error) {
		if b.Len() == 0 {
			return http.NoBody, nil
		}
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(b.Len()), nil
	return release, true
}
