package workers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
)

// client is what one user has open. The pool's mutex guards open.
type client struct {
	open  int           // requests
	large chan struct{} // holds a token for each long body
}

// A user has no more open than a worker would allow it, see [streamable.Options].
const (
	maxOpen  = 256
	maxBody  = 64 << 20
	longBody = 1 << 20 // not many of these may be in memory at a time
	maxLarge = 4
)

func newClient() *client { return &client{large: make(chan struct{}, maxLarge)} }

// receive reads the body of a request to its end, which a worker may answer before it has
// read that. It answers a body that cannot be read. A long one counts until release is
// called.
func (c *client) receive(w http.ResponseWriter, r *http.Request) (release func(), ok bool) {
	release = func() {}
	refuse := func(status int, words string) (func(), bool) {
		release()
		w.Header().Set("Connection", "close")
		http.Error(w, words, status)
		return nil, false
	}
	if r.ContentLength > maxBody {
		return refuse(http.StatusRequestEntityTooLarge, "the body is too long")
	}
	var b bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, maxBody)
	_, err := io.CopyN(&b, in, longBody)
	if err == nil {
		select {
		case c.large <- struct{}{}:
			release = func() { <-c.large }
		default:
			w.Header().Set("Retry-After", "1")
			return refuse(http.StatusTooManyRequests, "too many long messages at a time")
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
		return refuse(http.StatusRequestEntityTooLarge, "the body is too long")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not come in time")
	default:
		return refuse(http.StatusBadRequest, "the body cannot be read")
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(&b), int64(b.Len()), nil
	if b.Len() == 0 {
		r.Body = http.NoBody
	}
	return release, true
}
