package workers

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// peer is a worker that does what a test says.
type peer struct {
	*connections
	accepted chan net.Conn
	closed   chan struct{} // receives for each connection that is closed
}

// newPeer returns a worker. It calls answer for each request, and closes the connection if answer returns false.
func newPeer(t *testing.T, answer func(net.Conn, *http.Request) bool) *peer {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{connections: newConnections(), accepted: make(chan net.Conn, 100), closed: make(chan struct{}, 100)}
	p.dial = dialer(socket)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.accepted <- conn
			serving.Go(func() {
				in := bufio.NewReader(conn)
				for r, err := http.ReadRequest(in); err == nil && answer(conn, r); {
					r, err = http.ReadRequest(in)
				}
				conn.Close()
				p.closed <- struct{}{}
			})
		}
	})
	t.Cleanup(func() {
		p.end()
		l.Close()
		serving.Wait()
	})
	return p
}

// send sends a request of ann over a connection, or over the next one.
func (p *peer) send(t *testing.T, conn *connection, body string) *httptest.ResponseRecorder {
	t.Helper()
	if conn == nil {
		var err error
		if conn, err = p.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	defer func() { _ = recover() }() // an answer that breaks off
	newProxy(slog.New(slog.DiscardHandler), challenger{}).ServeHTTP(w, (&admission{conn: conn}).with(r))
	return w
}

// answers returns a worker that reads each request and answers it with a text.
func answers(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		_, err := io.WriteString(conn, text)
		return err == nil
	}
}

const answerA = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"

// TestKept checks over how many connections three requests go, one after another.
func TestKept(t *testing.T) {
	for name, tt := range map[string]struct {
		answer      string
		body        int
		then        string // what else the worker does: "" reads the next request
		connections int
	}{
		"an answer":                   {answerA, 1, "", 1},
		"no body":                     {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "", 1},
		"the longest small body":      {answerA, smallBody, "", 1},
		"in chunks, with trailers":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n", 1, "", 1},
		"statuses of 1xx":             {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: b\r\n\r\n" + answerA, 1, "", 1},
		"the worker says that":        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", 1, "", 3},
		"HTTP/1.0":                    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 1, "", 3},
		"two answers":                 {answerA + answerA, 1, "", 3},
		"a body that none has":        {"HTTP/1.1 204 No Content\r\n\r\na", 1, "", 3},
		"half a body":                 {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", 1, "close", 3},
		"a refused status":            {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 1\r\n\r\n", 1, "", 3}, // its body is not read
		"the worker closes":           {answerA, 1, "close", 3},
		"before the message was read": {answerA, 8 << 20, "wait", 3},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			p := newPeer(t, func(conn net.Conn, r *http.Request) bool {
				if tt.then != "wait" {
					return answers(tt.answer)(conn, r) && tt.then == ""
				}
				_, _ = io.WriteString(conn, tt.answer)
				<-over
				return false
			})
			t.Cleanup(func() { close(over) })
			for range 3 {
				w := p.send(t, nil, strings.Repeat("a", tt.body))
				if tt.then == "close" {
					<-p.closed
				}
				if w.Code/100 != 2 && name != "a refused status" {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
			if n := len(p.accepted); n != tt.connections {
				t.Errorf("%d connections, want %d", n, tt.connections)
			}
		})
	}
}

// TestKeptEnd checks that no more connections than allowed are kept, that they are closed after a time, and that
// no request goes over one of a worker that has ended.
func TestKeptEnd(t *testing.T) {
	p := newPeer(t, answers(answerA))
	take := func() *connection {
		t.Helper()
		conn, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	var all []*connection
	for range maxKept + 2 {
		all = append(all, take())
	}
	for _, conn := range all {
		p.send(t, conn, "a")
	}
	<-p.closed
	<-p.closed
	late := take()
	if len(p.kept) != maxKept-1 || late != all[0] {
		t.Errorf("%d connections are kept, and one was taken", len(p.kept))
	}
	p.timer.Reset(0)
	for range maxKept - 1 {
		<-p.closed
	}
	p.send(t, late, "a")
	if again := take(); again != late || !p.timer.Stop() {
		t.Error("a connection was not kept after the others were closed, or without an end")
	}
	p.end()
	p.send(t, late, "a")
	if len(p.kept) > 0 {
		t.Error("a connection is kept after the end of the worker")
	}
	<-p.closed
}

// TestUnwritten checks that a request of which the worker can have got nothing is not called ambiguous, and that no
// request is sent twice.
func TestUnwritten(t *testing.T) {
	requests := make(chan string, 10)
	p := newPeer(t, func(conn net.Conn, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		requests <- string(body)
		if string(body) != "first" {
			return false
		}
		_, err := io.WriteString(conn, answerA)
		return err == nil
	})
	for _, tt := range []struct {
		body   string
		status int
		closed bool // by the worker, before anything is written
	}{
		{"first", http.StatusOK, false},
		{"second", http.StatusBadGateway, false},
		{"first", http.StatusOK, false},
		{"third", http.StatusServiceUnavailable, true},
		{strings.Repeat("long", smallBody), http.StatusBadGateway, false},
		{"first", http.StatusOK, false},
		{strings.Repeat("long", smallBody), http.StatusServiceUnavailable, true},
	} {
		conn, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tt.closed {
			var theirs net.Conn
			for len(p.accepted) > 0 {
				theirs = <-p.accepted
			}
			theirs.Close()
		}
		w := p.send(t, conn, tt.body)
		if w.Code != tt.status || (w.Header().Get("Retry-After") != "") != tt.closed {
			t.Errorf("%.9s: %d %v", tt.body, w.Code, w.Header())
		}
		if !tt.closed {
			<-requests
		}
		if len(requests) > 0 {
			t.Errorf("%.9s: the worker got it more than once, or although it was not sent", tt.body)
		}
	}
}

// TestHeaderLimit checks that the headers of each answer over a connection are limited, and bodies are not.
func TestHeaderLimit(t *testing.T) {
	long := strings.Repeat("a", 2*maxAnswerHeader)
	p := newPeer(t, func(conn net.Conn, r *http.Request) bool {
		if body, _ := io.ReadAll(r.Body); string(body) == "body" {
			return answers(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long))(conn, r)
		}
		return answers("HTTP/1.1 200 OK\r\nA: "+long+"\r\nContent-Length: 0\r\n\r\n")(conn, r)
	})
	for _, body := range []string{"header", "body", "body", "header"} {
		w := p.send(t, nil, body)
		if ok := body == "body" && w.Code == http.StatusOK && w.Body.Len() == len(long); !ok && (body == "body" || w.Code != http.StatusBadGateway) {
			t.Errorf("a long %s: %d, %d bytes", body, w.Code, w.Body.Len())
		}
	}
	if n := len(p.accepted); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}
