package httpserve

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// pipes is a listener for in-memory connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestKeepAlive sends several requests on one connection. Each comes after the write deadline of the answer before it.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := http.NewServeMux()
		m.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { // as the handlers of MCP do
			<-time.After(10 * time.Minute)
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(w, "{}")
		})
		var draining atomic.Bool
		server := newServer(withHealth(m, &draining, nil), slog.New(slog.DiscardHandler))
		listener := make(pipes, 1)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		ours, theirs := net.Pipe()
		listener <- theirs
		answers := bufio.NewReader(ours)
		for _, path := range []string{"/mcp", "/healthz", "/readyz", "/mcp", "/healthz"} {
			must.Get(io.WriteString(ours, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s, %v", path, answer.Status, err)
			}
			<-time.After(keepAlive - time.Second)
		}
		must.Check(t, server.Close())
		<-ended
	})
}
