package workers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// usage counts what one user has open. The pool's mutex guards requests.
type usage struct {
	requests int           // open ones
	large    chan struct{} // holds a token for each long body
}

// The limits for each user. They are those of a worker, see [mcphttp.Options].
const (
	maxOpen  = 256      // requests
	maxBody  = 64 << 20 // bytes
	longBody = 1 << 20  // the size in bytes from which a body counts as long
	maxLarge = 4        // long bodies in memory at the same time
)

func newUsage() *usage { return &usage{large: make(chan struct{}, maxLarge)} }

// readBody reads the whole body of a request into memory, because a worker may answer
// before it has read the body. If that fails, readBody has answered the request and ok is
// false. A long body counts against maxLarge until release is called.
func (u *usage) readBody(w http.ResponseWriter, r *http.Request) (release func(), ok bool) {
	release = func() {}
	refuse := func(status int, message string) (func(), bool) {
		release()
		w.Header().Set("Connection", "close")
		http.Error(w, message, status)
		return nil, false
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
	case errors.As(err, &long):
		return refuse(http.StatusRequestEntityTooLarge, tooLong)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time; send the request again")
	default:
		return refuse(http.StatusBadRequest, "the body could not be read to its end; send the request again")
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(&b), int64(b.Len()), nil
	if b.Len() == 0 {
		r.Body = http.NoBody
	}
	return release, true
}
