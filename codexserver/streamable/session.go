package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// session is a client with a handshake as a [jsonrpc.Transport]: what it sends comes
// by POST, what goes out takes the stream of the request that it belongs to, else the
// one that the client has opened by GET.
type session struct {
	id      string
	handler *Handler
	owner   *principal
	unasked bool // its client lacks codex:approve

	mu       sync.Mutex
	to       func(message []byte, err error) // takes messages of the client; nil before Push
	next     []byte                          // a message that nothing has taken yet
	closing  bool                            // the session is to end
	ended    bool                            // it has ended
	version  string                          // of MCP, "" before the answer to initialize
	standing stream                          // of what belongs to no request
	heard    int                             // the number of its last event that was written
	streams  map[int]*stream
	requests map[jsonrpc.ID]*stream    // without an answer
	calls    map[jsonrpc.ID]ownRequest // the server's own requests without an answer
	number   int                       // of the newest stream
	kept     []*event                  // of all streams, oldest first
	retained int                       // bytes of them
	changed  chan struct{}             // closed at the next change; nil if nothing waits for it
	ran      bool                      // something that needs codex:run
	open     int                       // HTTP requests
	used     time.Time
}

var errSessionClosed = errors.New("the session has ended")

// newSession returns a session that is entered already.
func (h *Handler) newSession(id string, owner *principal, who Principal) *session {
	s := &session{
		id: id, handler: h, owner: owner, unasked: !who.may(ScopeApprove), used: time.Now(), open: 1,
	}
	s.standing.session = s
	return s
}

// begin begins to serve the session.
func (s *session) begin() {
	ctx := s.handler.ctx
	if s.unasked {
		ctx = codexserver.WithoutQuestions(ctx)
	}
	if b, ok := s.owner.own.(beginner); ok {
		b.Begin(ctx, s, s.over)
	} else {
		go func() { s.over(s.owner.own.Serve(ctx, s)) }()
	}
}

// over is called when the session has ended.
func (s *session) over(err error) {
	defer s.handler.sessions.Done()
	if err != nil {
		s.handler.o.Logger.Debug("session ended", "error", err)
	}
	_ = s.Close()
	s.handler.forget(s)
	s.mu.Lock()
	s.ended = true
	s.change()
	s.mu.Unlock()
}

// end ends the client's input, and with it the session. It does not wait for that. The
// handler's mutex is not held.
func (s *session) end() {
	s.mu.Lock()
	to := s.to
	s.closing = true
	s.change()
	s.mu.Unlock()
	if to != nil {
		to(nil, io.EOF)
	}
}

// awaitEnd waits until the session has ended.
func (s *session) awaitEnd(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// left returns how long the session lives if it is not used.
func (s *session) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy() {
		return s.handler.o.IdleTimeout
	}
	return s.handler.o.IdleTimeout - time.Since(s.used)
}

// busy reports whether a request is open, of HTTP or of MCP. s.mu is held.
func (s *session) busy() bool { return s.open > 0 || len(s.requests) > 0 }

// enter counts an HTTP request of the session, which is to leave.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.used = time.Now()
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.used = time.Now()
}

// changes returns a channel that is closed at the next change. s.mu is held.
func (s *session) changes() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// change wakes who waits for the session. s.mu is held.
func (s *session) change() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// wait waits for the next change. s.mu is held, but not while it waits.
func (s *session) wait(ctx context.Context) error {
	changed := s.changes()
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put sets a member of a map that is made for it.
func put[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}

// remove is the reverse of put: an idle session has many maps without members.
func remove[K comparable, V any](m *map[K]V, key K) {
	if delete(*m, key); len(*m) == 0 {
		*m = nil
	}
}

// drop forgets a stream that is answered and that no client can take up again, because
// none was told the id of an event. s.mu is held.
func (s *session) drop(st *stream) {
	for _, e := range st.events {
		s.retained -= len(e.data) + overhead
	}
	s.kept = slices.DeleteFunc(s.kept, func(e *event) bool { return e.stream == st })
	st.events = nil
	remove(&s.streams, st.number)
	s.change()
}

// push hands a message to the peer.
func (s *session) push(ctx context.Context, body []byte) error {
	s.mu.Lock()
	for !s.closing && s.to == nil && s.next != nil {
		if err := s.wait(ctx); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	to, closing := s.to, s.closing
	if !closing && to == nil {
		s.next = body
		s.change()
	}
	s.mu.Unlock()
	switch {
	case closing:
		return errSessionClosed
	case to != nil:
		to(body, nil)
	}
	return nil
}

// attach makes a response the reader of a stream, from the event behind read on. s.mu
// is held.
func (s *session) attach(st *stream, read int) *reader {
	me := &reader{read: read, replaced: make(chan struct{})}
	if st.reader != nil {
		close(st.reader.replaced)
	}
	st.reader = me
	return me
}

// detach ends the reading of a response.
func (s *session) detach(st *stream, me *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.reader == me {
		st.reader = nil
		if st == &s.standing {
			s.heard = max(s.heard, me.read)
		}
		s.change()
	}
}

// post serves a POST of the session.
func (s *session) post(w http.ResponseWriter, r *http.Request, e *envelope, body []byte) {
	s.enter()
	defer s.leave()
	if e.kind != request {
		s.note(w, r, e, body)
		return
	}
	s.mu.Lock()
	if s.requests[e.id] != nil {
		s.mu.Unlock()
		fail(w, http.StatusBadRequest, e.id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "id %s is already in use", e.id))
		return
	}
	s.ran = s.ran || slices.Contains(e.needs(), ScopeRun)
	s.number++
	st := &stream{session: s, number: s.number, request: e, came: context.WithoutCancel(r.Context())}
	put(&s.streams, st.number, st)
	put(&s.requests, e.id, st)
	me := s.attach(st, 0)
	s.mu.Unlock()
	if err := s.push(r.Context(), body); err != nil {
		s.mu.Lock()
		st.end()
		s.mu.Unlock()
		fail(w, http.StatusNotFound, e.id, errEnded)
		return
	}
	st.serve(w, r, me, r.Header.Get(headerPrefer) == preferStream && e.method != "initialize")
}

// note hands on what is not answered.
func (s *session) note(w http.ResponseWriter, r *http.Request, e *envelope, body []byte) {
	if err := s.push(r.Context(), body); err != nil {
		fail(w, http.StatusNotFound, jsonrpc.ID{}, errEnded)
		return
	}
	s.mu.Lock()
	switch st := s.requests[e.params.RequestID]; {
	case e.kind == response:
		remove(&s.calls, e.id)
	case e.method == "notifications/cancelled" && st != nil && st.request.method != "initialize":
		st.end() // it gets no answer
	}
	s.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

// get serves a GET of the session: what belongs to no request, or a stream that is
// taken up again.
func (s *session) get(w http.ResponseWriter, r *http.Request) {
	s.enter()
	defer s.leave()
	s.mu.Lock()
	st, read := &s.standing, s.heard
	if id := r.Header.Get(headerEvent); id != "" {
		number, last, ok := parseEventID(id)
		st, read = s.stream(number), last
		if !ok || st == nil || last < st.lost || last > st.next {
			s.mu.Unlock()
			refuse(w, http.StatusBadRequest, "the events after this "+headerEvent+" are not kept")
			return
		}
	} else if before := st.reader; before != nil {
		read = before.read
	}
	me := s.attach(st, read)
	s.mu.Unlock()
	st.serve(w, r, me, true)
}

// stream returns a stream by its number, nil if it is not kept. s.mu is held.
func (s *session) stream(number int) *stream {
	if number == 0 {
		return &s.standing
	}
	return s.streams[number]
}

// Push is described at [jsonrpc.Transport]. The client learns the session's id with the
// answer to its first message, so nothing can overtake that one here.
func (s *session) Push(to func(message []byte, err error)) {
	s.mu.Lock()
	first, closing := s.next, s.closing
	s.to, s.next = to, nil
	s.mu.Unlock()
	if first != nil {
		to(first, nil)
	}
	if closing {
		to(nil, io.EOF)
	}
}

// Read implements [jsonrpc.Transport], for a [Service] that does not know Push.
func (s *session) Read(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next == nil && !s.closing {
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
	if s.next == nil {
		return nil, io.EOF
	}
	body := s.next
	s.next = nil
	s.change()
	return body, nil
}

// Write implements [jsonrpc.Transport]. A stream whose reader is far behind holds up
// the others until its reader has caught up, or is left for not reading.
func (s *session) Write(ctx context.Context, messages [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		out := summarize(m)
		st := s.route(&out)
		if st == nil {
			s.handler.o.Logger.Debug("an answer that no request waits for", "id", out.id)
			continue
		}
		if err := st.room(ctx); err != nil {
			return err
		}
		st.add(bytes.Clone(m), out.method == "")
		if out.method == "" {
			if st.request.method == "initialize" && s.version == "" {
				s.version = versionOf(m)
			}
			st.end()
		}
	}
	return nil
}

// Close implements [jsonrpc.Transport].
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.change()
	return nil
}
