package front

import (
	"maps"
	"net/http"
	"time"
)

// passing passes an answer on to the client, each part at once. The head goes with the first part, so that
// an answer that breaks off before it can still become an error with a text.
type passing struct {
	w      http.ResponseWriter
	header http.Header
	head   http.Header // as it was at WriteHeader; what comes later is a trailer
	status int
	begun  bool
}

// Header implements [http.ResponseWriter].
func (p *passing) Header() http.Header { return p.header }

// WriteHeader implements [http.ResponseWriter].
func (p *passing) WriteHeader(status int) {
	if p.status == 0 {
		p.status, p.head = status, p.header.Clone()
	}
}

// begin sends the head, once.
func (p *passing) begin() {
	if p.begun {
		return
	}
	p.WriteHeader(http.StatusOK)
	p.begun = true
	delete(p.head, "Trailer")
	maps.Copy(p.w.Header(), p.head)
	p.w.WriteHeader(p.status)
}

// Write implements [io.Writer].
func (p *passing) Write(b []byte) (int, error) {
	p.begin()
	n, err := p.w.Write(b)
	if err == nil {
		err = http.NewResponseController(p.w).Flush()
	}
	return n, err
}

// FlushError is for [http.ResponseController].
func (p *passing) FlushError() error { return nil }

// SetWriteDeadline is for [http.ResponseController].
func (p *passing) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(p.w).SetWriteDeadline(t)
}
