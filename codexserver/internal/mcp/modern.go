package mcp

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Server has what the sessions of one server share. All fields must be set except
// EngineName, EngineReason, and those with a default.
type ModernServer struct {
	Tools *mcptool.Table
	// Approvals says how clients are asked, and how answers are read.
	Approvals elicit.Options
	// Version is the server's version. EngineName is the engine that runs the turns, and
	// EngineReason why it was chosen.
	Version, EngineName, EngineReason string
	// Folder is the working folder of a thread whose caller does not name one. Default:
	// [mcptool.ProjectFolder].
	Folder string
	// Seal seals the states that clients keep between two rounds.
	Seal *Seal
	// Tasks are the tasks of all sessions. Nil disables tasks.
	Tasks *Tasks
	// Relay takes the questions of clients that may not approve to clients of the
	// principal Approver. It is nil if there is no approver.
	Relay    *board.Relay
	Approver string
	// MaxUnread is how many bytes may wait for a client.
	MaxUnread Unread
	Logger    *slog.Logger

	once       sync.Once
	resultMeta *modern.ResultMetaObject
}

// Session has the calls of one client and their open questions. It is safe for concurrent
// use.
type ModernSession struct {
	server    *ModernServer
	principal string          // the owner of the session; "" if the server has one user
	shared    bool            // by several clients
	ctx       context.Context // ends with the session
	threads   *thread.Share
	jobs      *mcptool.Jobs
	pace      *Pace
	running   sync.WaitGroup // calls
	calls     atomic.Int64   // that may take long

	states states
	last   atomic.Pointer[metadata] // of the last request
	open   atomic.Int64             // requests that may take long
	reads  chan struct{}            // has an element for each task file that is being read
}

// NewSession returns a session of a principal. Its turns end with ctx. The threads and jobs
// are those of one client, or of all clients of the principal without a connection of their
// own.
func NewModernSession(ctx context.Context, s *ModernServer, principal string, shared bool, threads *thread.Share, jobs *mcptool.Jobs, p *Pace) *ModernSession {
	return &ModernSession{server: s, principal: principal, shared: shared, ctx: ctx, threads: threads, jobs: jobs, pace: p, reads: make(chan struct{}, maxReads)}
}

// Wait waits for the calls of the session, whose context must have ended.
func (s *ModernSession) Wait() { s.running.Wait() }

// Busy reports whether a call that may take long is unfinished, whether or not a request
// waits for it.
func (s *ModernSession) Busy() bool { return s.calls.Load() > 0 }

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
	return r.Method == modern.ToolsCall.Name() && hasMember(jsontext.Value(r.Params), "requestState") && Meta(r.Params) != nil
}

// Handler returns a handler for connections that have only requests of this era. It ignores
// notifications, which clients of this era do not send. See ServeRPC for asks.
func (s *ModernSession) Handler(asks bool) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return nil, nil
		}
		meta := Meta(r.Params)
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
	case modern.ResourcesList.Name():
		return s.listResources(q)
	case modern.ResourcesTemplatesList.Name():
		return s.listTemplates(q)
	case modern.ResourcesRead.Name():
		return s.long(q, s.readResource)
	case modern.ToolsCall.Name():
		return s.callTool(q)
	case modern.SubscriptionsListen.Name():
		return s.long(q, s.listen)
	}
	if s.server.Tasks.serves() {
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

// later answers a request that has entered, in another goroutine, and leaves for it. The peer
// does not bound what is answered later than on the read loop, so these requests count as
// such that may take long.
func (s *ModernSession) later(q *request, answer func() (any, error)) (any, error) {
	reply := q.rpc.Responder()
	s.running.Go(func() {
		defer s.leave()
		result, err := s.recovered(q.rpc.Method, answer)
		if err != nil {
			result = nil
		}
		if err := reply.Reply(result, err); err != nil {
			s.server.Logger.Debug(q.rpc.Method, "error", err)
		}
	})
	return nil, nil
}

// recovered calls answer and converts a panic to an error. The peer does that only on its
// own goroutines.
func (s *ModernSession) recovered(method string, answer func() (any, error)) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.server.Logger.Error("panic", "in", method, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error: the handler panicked")
		}
	}()
	return answer()
}

// long handles a request that may take long. It fails if there are too many.
func (s *ModernSession) long(q *request, handle func(*request) (any, error)) (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return handle(q)
}

// enter counts a request that may take long, and fails if there are too many. After a success
// the caller must call leave.
func (s *ModernSession) enter() error {
	if s.open.Add(1) > MaxConcurrent {
		s.leave()
		return tooMany()
	}
	return nil
}

func (s *ModernSession) leave() { s.open.Add(-1) }

func tooMany() error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError,
		"%d requests are under way; send this one again when one of them has ended or was cancelled", MaxConcurrent)
}

// folder returns the working folder of a thread whose caller does not name one. This era
// has no requests for roots.
func (s *ModernSession) folder() string { return cmp.Or(s.server.Folder, mcptool.ProjectFolder()) }

// guarded calls a tool, and converts a panic to an error result.
func (s *ModernSession) guarded(call func() *mcptypes.CallToolResult) (result *mcptypes.CallToolResult) {
	defer func() {
		if v := recover(); v != nil {
			s.server.Logger.Error("panic", "in", "a tool", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			result = mcptool.Broken()
		}
	}()
	return call()
}

// resultMeta returns the _meta of every result. It is read only.
func (s *ModernSession) resultMeta() *modern.ResultMetaObject { return s.server.meta() }

func (s *ModernServer) meta() *modern.ResultMetaObject {
	s.once.Do(func() {
		title := "Codex"
		s.resultMeta = &modern.ResultMetaObject{ServerInfo: &modern.Implementation{Name: "codex-mcp", Title: &title, Version: s.Version}}
		if s.EngineName == "" {
			return
		}
		engine, _ := jsontext.AppendQuote([]byte(`{"name":`), s.EngineName) // invalid UTF-8 becomes U+FFFD
		engine, _ = jsontext.AppendQuote(append(engine, `,"reason":`...), s.EngineReason)
		engine = append(engine, '}')
		s.resultMeta.Extra = map[string]stdjson.RawMessage{"io.github.codexmcp/engine": engine}
	})
	return s.resultMeta
}
