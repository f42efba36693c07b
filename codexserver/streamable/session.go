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
	in      chan []byte
	closed  chan struct{} // when the session is to end
	ended   chan struct{} // when it has
	once    sync.Once

	mu       sync.Mutex
	version  string  // of MCP, "" before the answer to initialize
	standing *stream // of what belongs to no request
	heard    int     // the number of its last event that was written
	streams  map[int]*stream
	requests map[jsonrpc.ID]*stream    // without an answer
	calls    map[jsonrpc.ID]ownRequest // the server's own requests without an answer
	number   int                       // of the newest stream
	kept     []*event                  // of all streams, oldest first
	retained int                       // bytes of them
	changed  chan struct{}
	ran      bool // something that needs codex:run
	open     int  // HTTP requests
	used     time.Time
	idle     *time.Timer
}

var errSessionClosed = errors.New("the session has ended")

// newSession returns a session that is entered already.
func (h *Handler) newSession(id string, owner *principal, who Principal) *session {
	s := &session{
		id: id, handler: h, owner: owner, unasked: !who.may(ScopeApprove), in: make(chan []byte), closed: make(chan struct{}), ended: make(chan struct{}),
		streams: map[int]*stream{}, requests: map[jsonrpc.ID]*stream{}, calls: map[jsonrpc.ID]ownRequest{}, changed: make(chan struct{}),
		used: time.Now(), open: 1,
	}
	s.standing = &stream{session: s}
	s.streams[0] = s.standing
	s.idle = time.AfterFunc(h.o.IdleTimeout, s.expire)
	return s
}

// run serves the session to its end.
func (s *session) run() {
	ctx := s.handler.ctx
	if s.unasked {
		ctx = codexserver.WithoutQuestions(ctx)
	}
	if err := s.owner.own.Serve(ctx, s); err != nil {
		s.handler.o.Logger.Debug("session ended", "error", err)
	}
	s.close()
	s.mu.Lock()
	s.idle.Stop()
	s.mu.Unlock()
	s.handler.forget(s)
	close(s.ended)
}

// close ends the session; run goes on to its end.
func (s *session) close() { s.once.Do(func() { close(s.closed) }) }

// expire ends the session if it is idle.
func (s *session) expire() {
	s.mu.Lock()
	left := s.handler.o.IdleTimeout - time.Since(s.used)
	if s.busy() {
		left = s.handler.o.IdleTimeout
	}
	if left > 0 {
		s.idle.Reset(left)
	}
	s.mu.Unlock()
	if left <= 0 {
		s.close()
	}
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

// change wakes who waits for the session. s.mu is held.
func (s *session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// drop forgets a stream that is answered and that no client can take up again, because
// none was told the id of an event. s.mu is held.
func (s *session) drop(st *stream) {
	for _, e := range st.events {
		s.retained -= len(e.data) + overhead
	}
	s.kept = slices.DeleteFunc(s.kept, func(e *event) bool { return e.stream == st })
	st.events = nil
	delete(s.streams, st.number)
	s.change()
}

// push hands a message to the peer.
func (s *session) push(ctx context.Context, body []byte) error {
	select {
	case s.in <- body:
		return nil
	case <-s.closed:
		return errSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
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
		if st == s.standing {
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
	s.streams[st.number], s.requests[e.id] = st, st
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
		delete(s.calls, e.id)
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
	st, read := s.standing, s.heard
	if id := r.Header.Get(headerEvent); id != "" {
		number, last, ok := parseEventID(id)
		st, read = s.streams[number], last
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

// Read implements [jsonrpc.Transport].
func (s *session) Read(ctx context.Context) ([]byte, error) {
	select {
	case body := <-s.in:
		return body, nil
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
	s.close()
	return nil
}
