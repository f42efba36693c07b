package workers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// front serves requests of ann by a pool. The worker listens at the socket.
func front(t *testing.T, socket string) *httptest.Server {
	t.Helper()
	return frontOf(t, newPool(Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {}}}, Logger: slog.New(slog.DiscardHandler)}), socket)
}

// frontOf does so by this pool.
func frontOf(t *testing.T, p *Pool, socket string) *httptest.Server {
	t.Helper()
	p.start = func(context.Context, string) (*worker, error) {
		w := newWorker(p.log, challenger{})
		w.connections.dial = dialer(socket)
		return w, nil
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Serve(w, r, Request{User: "ann", Sender: mcphttp.Principal{Name: "ann"}})
	}))
	t.Cleanup(s.Close)
	return s
}

// listen listens at a socket, and calls serve with each connection.
func listen(t *testing.T, serve func(net.Conn)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return socket
}

// TestEarlyAnswer checks that the client receives an answer that the worker sends after it
// has read only the headers of a long message.
func TestEarlyAnswer(t *testing.T) {
	const answer = "too early"
	socket := listen(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReaderSize(conn, 16)); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 415 Unsupported Media Type\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"+answer)
	})
	s := front(t, socket)
	for range 20 {
		got, err := http.Post(s.URL, "application/json", bytes.NewReader(make([]byte, 8<<20)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != http.StatusUnsupportedMediaType || string(text) != answer || err != nil {
			t.Fatalf("%s %q, %v", got.Status, text, err)
		}
	}
}

// TestBodies checks that a worker receives each message completely, or not at all.
func TestBodies(t *testing.T) {
	reached := make(chan int, 1)
	socket := listen(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return // the client closed the connection
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Expect") != "" || int64(len(body)) != r.ContentLength {
			t.Errorf("the worker reads %d bytes of %d: %v", len(body), r.ContentLength, err)
		}
		reached <- len(body)
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	s := front(t, socket)
	for name, tt := range map[string]struct {
		length  int64
		chunked bool
		status  int
	}{
		"empty":            {0, false, 204},
		"short":            {10, false, 204},
		"short in chunks":  {10, true, 204},
		"at the bound":     {intake.LongBody, false, 204},
		"long":             {intake.LongBody + 1, false, 204},
		"long in chunks":   {intake.LongBody + 1, true, 204},
		"longest":          {intake.MaxBody, false, 204},
		"too long":         {intake.MaxBody + 1, false, 413},
		"too long, chunks": {intake.MaxBody + 1, true, 413},
	} {
		t.Run(name, func(t *testing.T) {
			body := io.LimitReader(zeros{}, tt.length)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			if r.ContentLength = tt.length; tt.chunked {
				r.ContentLength = -1
			}
			if tt.length == 0 {
				r.Body = http.NoBody
			}
			// Go's client can lose an answer that arrives before it has sent the whole body.
			r.Header.Set("Expect", "100-continue")
			got, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				if tt.chunked && tt.status == 413 {
					return
				}
				t.Fatal(err)
			}
			got.Body.Close()
			if got.StatusCode != tt.status {
				t.Errorf("%s", got.Status)
			}
			if tt.status != 204 {
				return
			}
			if n := <-reached; int64(n) != tt.length {
				t.Errorf("the worker has %d bytes, want %d", n, tt.length)
			}
		})
	}
	// The pool does not pass on an incomplete message.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nshort")
	_ = conn.(*net.TCPConn).CloseWrite()
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != http.StatusBadRequest || len(reached) > 0 {
		t.Errorf("half a message: %s, and %d reached the worker", got.Status, len(reached))
	}
}

// zeros is a reader of zero bytes without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
