package interop

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// watch is a proxy in front of a server that notes which calls found no tool of their
// name. What a scenario then found out is not about the server.
type watch struct {
	url string

	mu    sync.Mutex
	times []time.Time
}

// unknownTool is in the answer of both servers to such a call.
const unknownTool = "unknown tool"

type begunKey struct{}

// watchCalls starts a proxy, which adds the server's token if it has one.
func watchCalls(t *testing.T, r remote) *watch {
	t.Helper()
	target, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{}
	p := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			holdBody(p)
			p.Out.URL, p.Out.Host = target, p.In.Host
			if r.Token != "" {
				p.Out.Header.Set("Authorization", "Bearer "+r.Token)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			begun, _ := answer.Request.Context().Value(begunKey{}).(time.Time)
			answer.Body = &watchedBody{ReadCloser: answer.Body, found: func() { w.note(begun) }}
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		p.ServeHTTP(rw, q.WithContext(context.WithValue(q.Context(), begunKey{}, time.Now())))
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *watch) note(begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, begun)
}

// blind returns when the calls began that found no tool.
func (w *watch) blind() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.times)
}

// watchedBody looks for unknownTool in what is read.
type watchedBody struct {
	io.ReadCloser
	found func()
	end   []byte // of what was read
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	seen := append(b.end, p[:n]...)
	if bytes.Contains(seen, []byte(unknownTool)) {
		b.found()
		seen = nil
	}
	b.end = slices.Clone(seen[max(0, len(seen)-len(unknownTool)+1):])
	return n, err
}

// TestWatchedBody checks that it finds the words once, also where a read ends within them.
func TestWatchedBody(t *testing.T) {
	for text, want := range map[string]int{
		"":                                    0,
		"an unknown method":                   0,
		`data: {"text":"unknown tool \"x\""}`: 1,
	} {
		for step := 1; step <= len(text); step++ {
			found := 0
			b := &watchedBody{ReadCloser: io.NopCloser(bytes.NewReader([]byte(text))), found: func() { found++ }}
			if got, err := io.ReadAll(onlyReads{b, step}); err != nil || string(got) != text || found != want {
				t.Errorf("%q by %d: read %q, %v; found %d times, want %d", text, step, got, err, found, want)
			}
		}
	}
}

// onlyReads reads at most n bytes at once.
type onlyReads struct {
	io.Reader
	n int
}

func (r onlyReads) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.n)]) }
