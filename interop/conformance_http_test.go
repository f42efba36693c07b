package interop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// The conformance suite speaks Streamable HTTP alone (MCP 2025-11-25,
// basic/transports#streamable-http). The two ends of it here are as small as
// the suite allows: no stream is taken up again, and there is none beside
// those of requests.

const sessionHeader = "Mcp-Session-Id"

// envelope is what HTTP has to know of a message.
type envelope struct {
	ID     *jsonrpc.ID `json:"id"`
	Method string      `json:"method"`
}

// httpServer gives each session a peer and features of its own.
type httpServer struct {
	t       *testing.T
	running sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*httpSession
}

func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m envelope
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := r.Header.Get(sessionHeader)
	if m.Method == "initialize" {
		id = s.open()
		w.Header().Set(sessionHeader, id)
	}
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	if session == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if m.ID == nil || m.Method == "" { // a notification, or an answer to the server
		session.in <- body
		w.WriteHeader(http.StatusAccepted)
		return
	}
	session.answer(w, r, *m.ID, body)
}

// open starts a session.
func (s *httpServer) open() string {
	session := &httpSession{in: make(chan []byte, 16), closed: make(chan struct{})}
	id := rand.Text()
	s.mu.Lock()
	s.sessions[id] = session
	s.mu.Unlock()
	f := newFeatures()
	f.peer = jsonrpc.NewPeer(session, f.mux(), &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	s.running.Go(func() {
		if err := f.peer.Run(context.Background()); err != nil {
			s.t.Errorf("session: %v", err)
		}
	})
	return id
}

// close ends the sessions.
func (s *httpServer) close() {
	s.mu.Lock()
	for _, session := range s.sessions {
		close(session.closed)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// httpSession is the transport of a session's peer. Answers take the way of
// their request, whatever else the server sends that of the newest request
// without an answer.
type httpSession struct {
	in     chan []byte
	closed chan struct{}

	mu      sync.Mutex
	streams []*stream // oldest first
}

// stream leads to a request's answer and what precedes it.
type stream struct {
	id   jsonrpc.ID
	out  chan []byte
	gone <-chan struct{}
}

func (s *httpSession) answer(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, body []byte) {
	st := &stream{id, make(chan []byte), r.Context().Done()}
	s.mu.Lock()
	s.streams = append(s.streams, st)
	s.mu.Unlock()
	s.in <- body
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case m, ok := <-st.out:
			if !ok {
				return
			}
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", m)
			w.(http.Flusher).Flush()
		case <-st.gone:
			s.remove(st)
			return
		}
	}
}

func (s *httpSession) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(other *stream) bool { return other == st })
}

// Read implements jsonrpc.Transport.
func (s *httpSession) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements jsonrpc.Transport.
func (s *httpSession) Write(_ context.Context, messages [][]byte) error {
	for _, m := range messages {
		var e envelope
		if err := json.Unmarshal(m, &e); err != nil {
			return err
		}
		last := e.ID != nil && e.Method == ""
		s.mu.Lock()
		i := len(s.streams) - 1
		if last {
			i = slices.IndexFunc(s.streams, func(st *stream) bool { return st.id == *e.ID })
		}
		var st *stream
		if i >= 0 {
			st = s.streams[i]
		}
		s.mu.Unlock()
		if st == nil {
			continue // the client has gone away from it
		}
		select {
		case st.out <- bytes.Clone(m):
		case <-st.gone:
		}
		if last {
			s.remove(st)
			close(st.out)
		}
	}
	return nil
}

// Close implements jsonrpc.Transport. The session ends with the server.
func (s *httpSession) Close() error { return nil }

// httpClient is the transport of a client's peer.
type httpClient struct {
	url    string
	in     chan []byte
	closed chan struct{}

	session string
}

// Read implements jsonrpc.Transport.
func (c *httpClient) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements jsonrpc.Transport. It waits for the answers to requests,
// which is enough for a client that calls one thing after another.
func (c *httpClient) Write(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		if err := c.post(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *httpClient) post(ctx context.Context, m []byte) error {
	var e envelope
	if err := json.Unmarshal(m, &e); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(bytes.Clone(m)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if id := answer.Header.Get(sessionHeader); id != "" {
		c.session = id
	}
	if e.ID == nil || e.Method == "" {
		return nil
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(answer.Body)
		c.in <- body
		return err
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			c.in <- []byte(data)
		}
	}
	return lines.Err()
}

// Close implements jsonrpc.Transport.
func (c *httpClient) Close() error {
	close(c.closed)
	return nil
}
