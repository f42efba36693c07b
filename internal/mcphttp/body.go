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
	if r.ContentLength > int64(h.o.MaxBody) {
		h.tooLong(w)
		return nil, nil, false
	}
	release = func() {}
	var b bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, int64(h.o.MaxBody))
	_, err := io.CopyN(&b, in, longBody)
	if err == nil {
		select {
		case h.large <- struct{}{}:
			release = func() { <-h.large }
		default:
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusTooManyRequests, "too many long messages at the same time")
			return nil, nil, false
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
		release()
		h.tooLong(w)
		return nil, nil, false
	default:
		release()
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, "the body did not arrive in time")
		return nil, nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the deadline was for the body only
	return b.Bytes(), release, true
}

func (h *Handler) tooLong(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	fail(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "message is longer than %d bytes", h.o.MaxBody))
}
