package providertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxRequest bounds the body of a request.
const maxRequest = 256 << 20

// Server is a scripted provider that listens until it is closed.
type Server struct {
	// URL is the server's address, without a path.
	URL string

	http   *http.Server
	served chan struct{}
	end    context.CancelFunc
	live   sync.WaitGroup

	mu       sync.Mutex
	turns    []Turn
	requests []Request
	arrived  chan struct{} // closed when the next request arrives
}

// New starts a provider that answers with turns. It panics when it cannot
// listen on the loopback interface.
func New(turns ...Turn) *Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("providertest: %v", err))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		URL:    "http://" + listener.Addr().String(),
		served: make(chan struct{}),
		end:    cancel,
		turns:  slices.Clone(turns),

		arrived: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // returns after Close
	}()
	return s
}

// BaseURL returns the value for a provider's base_url.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Add appends turns to the script.
func (s *Server) Add(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

// Reset replaces the unused turns of the script.
func (s *Server) Reset(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = slices.Clone(turns)
}

// Requests returns the requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await waits until n requests have arrived. It fails when ctx ends first.
func (s *Server) Await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, next := len(s.requests), s.arrived
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("providertest: %d of %d requests: %w", have, n, context.Cause(ctx))
		}
	}
}

// Close stops the server, ends its requests and waits for their end.
func (s *Server) Close() {
	s.end()
	_ = s.http.Close() // an error changes nothing: the listener is closed
	<-s.served
	s.live.Wait()
}

// ServeHTTP implements [http.Handler], for programs with a listener of their own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.live.Add(1)
	defer s.live.Done()
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body}
	turn, ok := s.take(req)
	if !ok {
		http.Error(w, `{"error":{"message":"providertest: the script has no turn for this request"}}`,
			http.StatusBadRequest)
		return
	}
	if turn.Func != nil {
		turn = turn.Func(req)
	}
	if turn.Wait != nil {
		select {
		case <-turn.Wait:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // an answer without a body would look whole
		}
	}
	answer(r.Context(), w, req, turn)
}

// take records a request and takes the turn for it from the script.
func (s *Server) take(req Request) (Turn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	close(s.arrived)
	s.arrived = make(chan struct{})
	for i, t := range s.turns {
		if !bytes.Contains(req.Body, []byte(t.Match)) {
			continue
		}
		if !t.Repeat {
			s.turns = slices.Delete(s.turns, i, i+1)
		}
		return t, true
	}
	return Turn{}, false
}

func answer(ctx context.Context, w http.ResponseWriter, req Request, t Turn) {
	for k, values := range t.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = values
	}
	if t.Status != 0 && t.Status != http.StatusOK {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(t.Body)))
		w.WriteHeader(t.Status)
		_, _ = io.WriteString(w, t.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &events{ctx: ctx, w: w, left: t.TruncateAt, bounded: t.TruncateAt > 0}
	switch {
	case t.Body != "":
		out.raw(t.Body)
	case strings.HasSuffix(req.Path, "/responses"):
		out.responses(t)
	default:
		out.chat(t)
	}
	if out.broken {
		panic(http.ErrAbortHandler) // this breaks the connection
	}
}
