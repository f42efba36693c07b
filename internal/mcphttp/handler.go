package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// Handler serves MCP at one path. It is safe for concurrent use.
type Handler struct {
	open   func(ctx context.Context, name string) Service
	o      Options
	guard  *Guard
	ctx    context.Context // ends when the handler is closed
	end    context.CancelCauseFunc
	bodies *Bodies

	serving  sync.WaitGroup // HTTP requests
	sessions sync.WaitGroup // sessions that have not ended

	mu         sync.Mutex
	draining   bool // Drain was called: no new work is accepted
	closed     bool // Close was called
	principals map[string]*principal
}

// principal is the state of one user. The handler's mutex guards it.
type principal struct {
	own      Service
	open     int                 // HTTP requests being served
	sessions map[string]*session // by session id
}

// New returns a handler, which calls open once for each principal, with a context that ends
// when the handler is closed. The caller must close it. New fails without
// [Options].Authenticate.
func New(open func(ctx context.Context, name string) Service, o *Options) (*Handler, error) {
	guard, err := NewGuard(o)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(context.Background())
	return &Handler{
		open: open, o: guard.o, guard: guard, ctx: ctx, end: end, bodies: NewBodies(guard.o.MaxBody),
		principals: map[string]*principal{},
	}, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, method: word(r.Method), began: time.Now()}
	defer h.log(a)
	w = a
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	// Before net/http answers, it reads what the handler has left of the body, for example
	// that of a refused request. The deadline bounds that too. An error means that w does
	// not support deadlines; then those of the http.Server hold.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.o.BodyTimeout))
	_ = control.SetWriteDeadline(time.Now().Add(h.o.WriteTimeout))
	who, ok := h.guard.Admit(w, r)
	if !ok {
		return
	}
	a.principal = who.Name
	p, status, words := h.enter(who)
	if p == nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, status, words)
		return
	}
	defer h.leave(p)
	for _, name := range once {
		if len(r.Header.Values(name)) > 1 {
			refuse(w, http.StatusBadRequest, name+" occurs twice")
			return
		}
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, p, who)
	case http.MethodGet, http.MethodDelete:
		h.withSession(w, r, p, who)
	default:
		notAllowed(w)
	}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	refuse(w, http.StatusMethodNotAllowed, "want POST; GET and DELETE need a session")
}

// enter counts a request of a principal. If the principal has too many, enter returns a nil
// principal and the response.
func (h *Handler) enter(who Principal) (p *principal, status int, words string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, http.StatusServiceUnavailable, "the server is shutting down"
	}
	p = h.principals[who.Name]
	if p == nil {
		if len(h.principals) >= h.o.Principals {
			return nil, http.StatusForbidden, "this server has as many principals as it may"
		}
		p = &principal{own: h.open(h.ctx, who.Name), sessions: map[string]*session{}}
		h.principals[who.Name] = p
	}
	if p.open >= h.o.MaxStreams {
		return nil, http.StatusTooManyRequests, "too many requests are open"
	}
	p.open++
	h.serving.Add(1)
	return p, 0, ""
}

func (h *Handler) leave(p *principal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.open--
	h.serving.Done()
}

// refusing reports whether the handler accepts no new work.
func (h *Handler) refusing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining
}

// post serves a POST: one message.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, p *principal, who Principal) {
	if !accepts(r, "application/json", "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, "want Accept: application/json, text/event-stream")
		return
	}
	body, release, ok := h.read(w, r)
	if !ok {
		return
	}
	defer release()
	e, fault := parseFor(p.own, body)
	if fault == errBatch {
		h.postBatch(w, r, p, who, body)
		return
	}
	noteMessage(w, &e)
	if fault != nil {
		fail(w, http.StatusBadRequest, e.id, fault)
		return
	}
	id, version := r.Header.Get(headerSession), r.Header.Values(headerVersion)
	switch {
	case e.meta != nil, slices.Equal(version, []string{modern.ProtocolVersion}):
		h.postModern(w, r, p, who, &e, body)
	case !legacyVersion(version):
		fail(w, http.StatusBadRequest, e.id,
			jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s: unknown version", headerVersion))
	case e.kind == request && e.method == "initialize" && id == "":
		h.initialize(w, r, p, who, &e, body)
	case id == "":
		fail(w, http.StatusBadRequest, e.id, noEra(&e))
	default:
		s := h.session(p, id)
		if s == nil {
			fail(w, http.StatusNotFound, e.id, errEnded)
			return
		}
		h.postInSession(w, r, s, who, message{&e, body})
	}
}

// postInSession serves a POST of a session: one message, or those of a batch. If one of them is not allowed, none is
// handled.
func (h *Handler) postInSession(
	w http.ResponseWriter, r *http.Request, s *session, who Principal, messages ...message,
) {
	for _, m := range messages {
		if !h.guard.allowInSession(w, who, m.id, s.needs(m.envelope)) {
			return
		}
		if m.kind == request && h.refusing() {
			unavailable(w, m.id)
			return
		}
	}
	s.post(w, r, messages...)
}

// noEra returns the answer to a message that has neither a session nor metadata, so that its
// era is unknown.
func noEra(e *envelope) *jsonrpc.Error {
	if e.kind != request {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s is missing", headerSession)
	}
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams,
		Message: "params/_meta: missing; a request needs the metadata of MCP " + modern.ProtocolVersion +
			", or the header " + headerSession + " with the id that initialize returned",
		Data: []byte(`{"path":"/_meta"}`),
	}
}

func unavailable(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "5")
	fail(w, http.StatusServiceUnavailable, id,
		jsonrpc.Errorf(jsonrpc.CodeInternalError,
			"the server is shutting down and accepts no new work; nothing was started"))
}

// postModern serves a message of 2026-07-28.
func (h *Handler) postModern(
	w http.ResponseWriter, r *http.Request, p *principal, who Principal, e *envelope, body []byte,
) {
	switch e.kind {
	case response:
		fail(w, http.StatusBadRequest, jsonrpc.ID{},
			jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "MCP %s has no responses of clients", modern.ProtocolVersion))
		return
	case notification:
		w.WriteHeader(http.StatusAccepted) // no notification of 2026-07-28 has a meaning here
		return
	}
	if fault := checkHeaders(r.Header, e); fault != nil {
		fail(w, http.StatusBadRequest, e.id, fault)
		return
	}
	if needed := e.needs(); !h.guard.allow(w, who, e.id, needed, needed) {
		return
	}
	// While the handler drains, requests that continue existing work are still accepted.
	continues := strings.HasPrefix(e.method, "tasks/") || e.params.RequestState != nil
	if h.refusing() && !continues {
		unavailable(w, e.id)
		return
	}
	h.exchange(w, r, p, who, e, body)
}

// withSession serves a GET or a DELETE, which only sessions have.
func (h *Handler) withSession(w http.ResponseWriter, r *http.Request, p *principal, who Principal) {
	id := r.Header.Get(headerSession)
	if id == "" {
		notAllowed(w)
		return
	}
	if r.ContentLength != 0 {
		refuse(w, http.StatusBadRequest, "want no body")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream may stay open for long
	if !legacyVersion(r.Header.Values(headerVersion)) {
		refuse(w, http.StatusBadRequest, headerVersion+": unknown version")
		return
	}
	s := h.session(p, id)
	switch {
	case s == nil:
		fail(w, http.StatusNotFound, jsonrpc.ID{}, errEnded)
	case !h.guard.allowInSession(w, who, jsonrpc.ID{}, s.needsFor(r.Method)):
	case r.Method == http.MethodDelete:
		s.end()
		if s.awaitEnd(r.Context()) == nil {
			w.WriteHeader(http.StatusNoContent)
		}
	case !accepts(r, "text/event-stream"):
		refuse(w, http.StatusNotAcceptable, "want Accept: text/event-stream")
	default:
		s.get(w, r)
	}
}

// session returns the principal's session with an id, nil if it does not exist.
func (h *Handler) session(p *principal, id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.sessions[id]
}

// initialize starts a session and serves its first request.
func (h *Handler) initialize(
	w http.ResponseWriter, r *http.Request, p *principal, who Principal, e *envelope, body []byte,
) {
	if !h.guard.allowInSession(w, who, e.id, e.needs()) {
		return
	}
	random := make([]byte, 32)
	rand.Read(random)
	s := h.newSession(base64.RawURLEncoding.EncodeToString(random), p, who)
	defer s.leave()
	h.mu.Lock()
	if h.draining || h.closed {
		h.mu.Unlock()
		unavailable(w, e.id)
		return
	}
	var oldest *session
	if len(p.sessions) >= h.o.MaxSessions {
		if oldest = p.evict(who.may(ScopeRun)); oldest == nil {
			h.mu.Unlock()
			w.Header().Set("Retry-After", "5")
			fail(w, http.StatusTooManyRequests, e.id,
				jsonrpc.Errorf(jsonrpc.CodeInternalError, "all %d sessions are in use", h.o.MaxSessions))
			return
		}
	}
	p.sessions[s.id] = s
	h.sessions.Add(1)
	h.mu.Unlock()
	s.begin() // without the lock: the service may take long
	if oldest != nil {
		oldest.end()
	}
	w.Header().Set(headerSession, s.id)
	s.post(w, r, message{e, body})
}

// evict removes and returns the session that has been idle for longest, nil if all are in
// use. The caller must end it. If ran is false, evict spares sessions in which a request
// needed codex:run, because turns in the background would end with them. The handler's mutex
// is held.
func (p *principal) evict(ran bool) (oldest *session) {
	var since time.Time
	for _, s := range p.sessions {
		s.mu.Lock()
		if !s.busy() && (ran || !s.ran) && (oldest == nil || s.lastUsed.Before(since)) {
			oldest, since = s, s.lastUsed
		}
		s.mu.Unlock()
	}
	if oldest != nil {
		delete(p.sessions, oldest.id)
	}
	return oldest
}

// forget removes a session that has ended. Another one cannot have its id.
func (h *Handler) forget(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.owner.sessions[s.id] == s {
		delete(s.owner.sessions, s.id)
	}
}

// lookAgain is the interval at which Drain polls.
const lookAgain = 50 * time.Millisecond

// Drain refuses new work with 503. It returns when all work has ended, or with the error of
// ctx when that ends first. The handler still accepts answers to questions, and requests that
// poll and update tasks.
func (h *Handler) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for h.busy() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// busy reports whether a turn runs or a request of a session has no answer.
func (h *Handler) busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.principals {
		if p.own.Busy() {
			return true
		}
		for _, s := range p.sessions {
			s.mu.Lock()
			waiting := len(s.requests)
			s.mu.Unlock()
			if waiting > 0 {
				return true
			}
		}
	}
	return false
}

// Close ends all sessions and turns, and waits for all requests.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.draining, h.closed = true, true
	var open []*session
	for _, p := range h.principals {
		open = slices.AppendSeq(open, maps.Values(p.sessions))
	}
	h.mu.Unlock()
	for _, s := range open {
		s.end()
	}
	h.end(jsonrpc.ErrClosed)
	h.sessions.Wait()
	h.serving.Wait()
	var err error
	for _, p := range h.principals { // without the lock: no request is left that could add one
		err = errors.Join(err, p.own.Close())
	}
	return err
}
