package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// session is a client with a handshake, as a [jsonrpc.Transport]. The client sends its
// messages by POST. The server answers on the response to the POST. A message that belongs
// to a request is sent on the stream of that request; route decides where others are sent.
type session struct {
	id          string
	handler     *Handler
	owner       *principal
	noQuestions bool          // the client's token lacks codex:approve
	only        *stream       // takes every message, of an exchange; nil for a client with a handshake
	in          chan []byte   // has the message that the peer has not read yet; closed after that of an exchange
	closing     chan struct{} // closed when no message is accepted any more
	end         func()        // closes closing, after which the peer ends the session. It does not wait for that

	// The handler's mutex may be held while this one is taken, not the other way round. The
	// peer is never called with either: it may write, which takes this one.
	mu       sync.Mutex
	ended    bool                      // the peer has ended
	version  string                    // the version of MCP; "" before the answer to initialize
	requests map[jsonrpc.ID]*envelope  // the client's requests without an answer
	calls    map[jsonrpc.ID]ownRequest // the server's requests without an answer
	changed  chan struct{}             // closed at the next change; nil if nothing waits for it
	ran      bool                      // a request needed codex:run
	open     int                       // HTTP requests being served
	lastUsed time.Time
	idle     *time.Timer // calls expire; nil for an exchange
	out      streams
}

// streams are what the client reads of a session.
type streams struct {
	get       stream          // the one that the client reads by GET
	read      int             // the last event of get that was written to a client
	of        map[int]*stream // those of requests, by number
	number    int             // of the newest
	kept      []*event        // the events of all streams, oldest first
	keptBytes int             // the size of kept
}

// message is a message of the client.
type message struct {
	*envelope
	body []byte
}

var errSessionClosed = errors.New("the session has ended")

// newSession returns a session with one open request: the caller has entered it, and must
// leave it.
func (h *Handler) newSession(id string, owner *principal, who Principal) *session {
	closing := make(chan struct{})
	s := &session{
		id: id, handler: h, owner: owner, noQuestions: !who.may(ScopeApprove), lastUsed: time.Now(), open: 1,
		in: make(chan []byte, 1), closing: closing, end: sync.OnceFunc(func() { close(closing) }),
		requests: map[jsonrpc.ID]*envelope{}, calls: map[jsonrpc.ID]ownRequest{},
	}
	s.out.get.session, s.out.of = s, map[int]*stream{}
	return s
}

// begin starts to serve the session.
func (s *session) begin() {
	s.mu.Lock() // for expire
	s.idle = time.AfterFunc(s.handler.o.IdleTimeout, s.expire)
	s.mu.Unlock()
	go func() {
		defer s.handler.sessions.Done()
		s.run(s.handler.ctx, s.owner.own.Serve)
	}()
}

// run serves the session until it has ended, and removes it.
func (s *session) run(ctx context.Context, serve func(context.Context, jsonrpc.Transport) error) {
	if s.noQuestions {
		ctx = approval.WithoutQuestions(ctx)
	}
	if err := serve(ctx, s); err != nil {
		s.handler.o.Logger.Debug("session ended", "error", err)
	}
	s.end()
	s.handler.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.idle != nil {
		s.idle.Stop()
	}
	s.change()
}

// awaitEnd waits until the session has ended.
func (s *session) awaitEnd(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		if err := s.wait(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// expire ends the session if it is idle.
func (s *session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy() && !s.ended {
		s.idle.Reset(s.handler.o.IdleTimeout)
		return
	}
	s.end()
}

// busy reports whether an HTTP request is open or an MCP request has no answer. s.mu is
// held.
func (s *session) busy() bool { return s.open > 0 || len(s.requests) > 0 }

// enter counts an HTTP request. The request must call leave at its end.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.lastUsed = time.Now()
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.lastUsed = time.Now()
	if s.idle != nil && !s.ended {
		s.idle.Reset(s.handler.o.IdleTimeout)
	}
}

// changes returns a channel that is closed at the next change. s.mu is held.
func (s *session) changes() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// change wakes all goroutines that wait for a change. s.mu is held.
func (s *session) change() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// wait waits for the next change. It fails when closing is closed. s.mu is held, except while it waits.
func (s *session) wait(ctx context.Context, closing <-chan struct{}) error {
	changed := s.changes()
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-closing:
		return errSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop removes an answered stream. The client cannot resume it, because it has not received
// the id of an event. s.mu is held.
func (s *session) drop(st *stream) {
	for _, e := range st.after(0) {
		s.out.keptBytes -= len(e.data) + overhead
	}
	s.out.kept = slices.DeleteFunc(s.out.kept, func(e *event) bool { return e.stream == st })
	delete(s.out.of, st.number)
	s.change()
}

// push hands a message of the client to Read. It waits until the one before has been read.
func (s *session) push(ctx context.Context, body []byte) error {
	select {
	case <-s.closing:
		return errSessionClosed
	default:
	}
	select {
	case s.in <- body:
		return nil
	case <-s.closing:
		return errSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach makes a response the reader of a stream. The reader starts after the event with the
// number read. An earlier reader stops. s.mu is held.
func (s *session) attach(st *stream, read int) *reader {
	st.reader = &reader{read: read}
	s.change()
	return st.reader
}

// detach removes the reader, unless another one has replaced it.
func (s *session) detach(st *stream, me *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.reader == me {
		st.reader = nil
		if st == &s.out.get {
			s.out.read = max(s.out.read, me.read)
		}
		s.trim() // also what the reader has kept from being dropped
		s.change()
	}
}

// post serves a POST of the session: one message, or those of a batch. The answers are events
// of one stream; without requests the client gets 202.
func (s *session) post(w http.ResponseWriter, r *http.Request, messages ...message) {
	s.enter()
	defer s.leave()
	st := &stream{session: s}
	first := jsonrpc.ID{}
	s.mu.Lock()
	for _, m := range messages {
		if m.kind != request {
			continue
		}
		if s.requests[m.id] != nil {
			st.forsake(messages)
			s.mu.Unlock()
			fail(w, http.StatusBadRequest, m.id,
				jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "id %s is already in use", m.id))
			return
		}
		s.ran = s.ran || slices.Contains(m.needs(), ScopeRun)
		s.requests[m.id], m.stream = m.envelope, st
		if st.open++; st.open == 1 {
			s.out.number++
			st.number, first = s.out.number, m.id
			s.out.of[st.number] = st
		}
	}
	// Before the push: the answer may be written before push returns.
	me := s.attach(st, 0)
	asks := st.open > 0
	s.mu.Unlock()
	for _, m := range messages {
		if err := s.push(r.Context(), m.body); err != nil {
			s.mu.Lock()
			st.forsake(messages)
			s.mu.Unlock()
			fail(w, http.StatusNotFound, first, errEnded)
			return
		}
		s.note(m.envelope)
	}
	if !asks {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	st.serve(w, r, me, len(messages) > 1)
}

// note records a notification or a response that the peer has.
func (s *session) note(e *envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch one := s.requests[e.params.RequestID]; {
	case e.kind == response:
		delete(s.calls, e.id)
	case e.kind == notification && e.method == "notifications/cancelled" && one != nil && one.method != "initialize":
		one.stream.answered(one.id) // a cancelled request has no answer
	}
}

// get serves a GET of the session. With Last-Event-ID the client resumes a stream, without
// it reads the stream of GET.
func (s *session) get(w http.ResponseWriter, r *http.Request) {
	s.enter()
	defer s.leave()
	s.mu.Lock()
	st, read := &s.out.get, s.out.read
	if id := r.Header.Get(headerEvent); id != "" {
		number, last, ok := parseEventID(id)
		st, read = s.stream(number), last
		if !ok || st == nil || last < st.lost || last > st.last {
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

// stream returns the stream with a number, nil if it is not kept. s.mu is held.
func (s *session) stream(number int) *stream {
	if number == 0 {
		return &s.out.get
	}
	return s.out.of[number]
}

// Read implements [jsonrpc.Transport].
func (s *session) Read(ctx context.Context) ([]byte, error) {
	var body []byte
	select {
	case body = <-s.in:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		select {
		case body = <-s.in: // accepted before the end
		default:
		}
	}
	if body == nil {
		return nil, io.EOF
	}
	return body, nil
}

// Write implements [jsonrpc.Transport]. If the reader of a stream is far behind, Write waits
// until the reader has caught up or its connection has timed out. Other streams wait
// meanwhile.
func (s *session) Write(ctx context.Context, messages [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		out, _ := jsonrpc.Parse(m) // the peer's own
		st := s.route(&out)
		if st == nil {
			s.handler.o.Logger.Debug("answer to no request", "id", out.ID)
			continue
		}
		if err := st.room(ctx); err != nil {
			return err
		}
		st.add(bytes.Clone(m), out.Method == "")
		if out.Method == "" {
			if one := s.requests[out.ID]; one != nil && one.method == "initialize" && s.version == "" {
				s.version = versionOf(&out)
			}
			st.answered(out.ID)
		}
	}
	return nil
}

// Close implements [jsonrpc.Transport]. It does not call the peer, which may be its caller.
func (s *session) Close() error {
	s.end()
	return nil
}
