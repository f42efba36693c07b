package mcp

import (
	"context"
	stdjson "encoding/json"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// ModernSession has the calls of a client by requests of their own, and their open questions. It
// is safe for concurrent use.
type ModernSession struct {
	client *Client
	shared bool  // by several connections
	calls  limit // that may take long
	open   limit // requests that may take long

	states states
	last   atomic.Pointer[metadata] // of the last request
	reads  chan struct{}            // has an element for each task file that is being read
	once   sync.Once                // for the work of servers that were killed
	known  chan struct{}            // closed when that continues here
}

// NewModernSession returns a session of a client. If shared is true, the requests come over
// several connections.
func NewModernSession(c *Client, shared bool) *ModernSession {
	return &ModernSession{client: c, shared: shared, reads: make(chan struct{}, maxReads), known: make(chan struct{})}
}

// Close closes the client of the session, see [Client.Close].
func (s *ModernSession) Close() error { return s.client.Close() }

// Busy reports whether a turn is running or queued, or a call that may take long is unfinished,
// whether or not a request waits for it.
func (s *ModernSession) Busy() bool { return s.calls.n.Load() > 0 || s.client.Busy() }

// MaxConcurrent is how many requests of a session that may take long are handled at a time.
// More are refused, because they would wait for calls that may never end.
const MaxConcurrent = 4096

// maxReads is how many task files the session reads at a time for tasks/get. Each read may
// need a thread.
const maxReads = 8

// Inline returns the methods of this era to handle on the read loop: those with which
// clients poll, and those whose order matters. They return at once.
func Inline() []string {
	return []string{modern.ServerDiscover.Name(), modern.TasksGet.Name(), modern.TasksUpdate.Name(), modern.TasksCancel.Name()}
}

// InlineIf reports whether a request is the retry of a call. A connection with several
// requests must handle retries on its read loop, so that of two answers to one question the
// first counts.
func InlineIf(r *jsonrpc.Request) bool {
	return r.Method == modern.ToolsCall.Name() && era.HasMember(jsontext.Value(r.Params), "requestState") && era.Meta(r.Params) != nil
}

// Handler returns a handler for connections that have only requests of this era. It ignores
// notifications, which clients of this era do not send. See ServeRPC for asks.
func (s *ModernSession) Handler(asks bool) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return nil, nil
		}
		meta := era.Meta(r.Params)
		if meta == nil {
			meta = jsontext.Value(`{}`) // refused, because the version is missing
		}
		return s.ServeRPC(ctx, r, meta, asks)
	})
}

// ServeRPC answers a request of this era with the _meta meta. It answers unknown and
// removed methods with -32601. If asks is false, the client may not approve and is not
// asked.
func (s *ModernSession) ServeRPC(ctx context.Context, r *jsonrpc.Request, meta jsontext.Value, asks bool) (any, error) {
	q, err := s.newRequest(ctx, r, meta, asks)
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case modern.ServerDiscover.Name():
		return s.discover()
	case modern.ToolsList.Name():
		return s.listTools()
	case modern.ToolsCall.Name():
		return s.callTool(q)
	case modern.SubscriptionsListen.Name():
		return s.long(q, s.listen)
	}
	if s.client.server.Tasks.serves() {
		s.continueAll(nil)
		switch r.Method {
		case modern.TasksGet.Name():
			return s.getTask(q)
		case modern.TasksUpdate.Name():
			return s.updateTask(q)
		case modern.TasksCancel.Name():
			return s.cancelTask(q)
		}
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method %q is not in MCP %s, or not served", r.Method, modern.ProtocolVersion)
}

// long handles a request that may take long. It fails if there are too many.
func (s *ModernSession) long(q *request, handle func(*request) (any, error)) (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.open.leave()
	return handle(q)
}

// enter counts a request that may take long, and fails if there are too many. After a success
// the caller must leave s.open. The peer does not bound what is answered later than on the read
// loop, so such requests count too.
func (s *ModernSession) enter() error {
	if !s.open.enter(MaxConcurrent) {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, tooMany, MaxConcurrent)
	}
	return nil
}

// resultMeta returns the _meta of every result. It is read only.
func (s *ModernSession) resultMeta() *modern.ResultMetaObject { return s.client.server.meta() }

func (s *Server) meta() *modern.ResultMetaObject {
	if m := s.resultMeta.Load(); m != nil {
		return m
	}
	m := &modern.ResultMetaObject{ServerInfo: &modern.Implementation{Name: "codex-mcp", Title: new("Codex"), Version: s.Version}}
	if info := s.engineInfo(); info != nil {
		m.Extra = map[string]stdjson.RawMessage{"io.github.codexmcp/engine": info}
	}
	s.resultMeta.Store(m)
	return m
}
