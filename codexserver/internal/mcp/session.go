package mcp

import (
	"context"
	"log/slog"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxLong is how many requests that may take long are handled at a time, but for calls of 2026-07-28, and how many
	// of those may be unfinished, including those that wait for their client. More are refused,
	// because they would wait for calls that may never end.
	maxLong = 4096
	// maxReads is how many task files the session reads at a time. Each read may need a thread.
	maxReads = 8
)

// Session has the threads and turns of one client in both eras, and its calls by requests of 2026-07-28.
// It is safe for concurrent use.
type Session struct {
	server  *Server
	ctx     context.Context // of the turns
	threads *thread.Share   // and the principal
	clients *approve.Clients
	turns   *tools.Turns
	running sync.WaitGroup  // what outlives its request
	present context.Context // until Leave
	leave   context.CancelFunc

	calls calls
	open  *slots.Limit // requests that may take long, but for calls of 2026-07-28
	pace  pace
	reads chan struct{} // has an element for each task file that is being read
	once  sync.Once     // for the work of servers that were killed
	known chan struct{} // closed when that continues here
}

// NewSession returns a session of the principal of threads, which must be closed. The turns that its calls wait for end
// with ctx, those in the background as turns says. It finds those of the sessions that share them.
func (s *Server) NewSession(ctx context.Context, threads *thread.Share, turns *tools.Turns) *Session {
	session := &Session{
		server: s, ctx: ctx, threads: threads, turns: turns,
		open:  slots.NewLimit(maxLong, tooMany),
		calls: calls{parked: map[string]*call{}, limit: slots.NewLimit(maxLong, unfinished)},
		pace:  make(pace, 1), reads: make(chan struct{}, maxReads), known: make(chan struct{}),
	}
	session.present, session.leave = context.WithCancel(context.Background())
	session.clients = approve.NewClients(session.present, s.Asking)
	return session
}

// Leave ends the calls that the client waits for. Tasks and turns in the background
// continue, and other clients answer their questions.
func (s *Session) Leave() { s.leave() }

// Busy reports whether a call by a request of 2026-07-28 that may take long is unfinished, whether or not a request
// waits for it.
func (s *Session) Busy() bool { return s.calls.limit.Busy() }

// Close waits for the turns of the client, and closes its threads. They end by themselves, or
// with the session's context.
func (s *Session) Close() error {
	s.leave()
	s.running.Wait()
	if !s.turns.Stays() {
		s.turns.Wait()
	}
	return s.threads.Close()
}

// Threads returns the threads of the client.
func (s *Session) Threads() *thread.Share { return s.threads }

// Context returns the context of the client's turns.
func (s *Session) Context() context.Context { return s.ctx }

// Log returns the server's log.
func (s *Session) Log() *slog.Logger { return s.server.Logger }

// Go calls f in another goroutine, whose end [Session.Close] waits for.
func (s *Session) Go(f func()) { s.running.Go(f) }

// principal returns the owner of the turns, "" if the server has one user.
func (s *Session) principal() string { return s.threads.Principal() }

// serve answers a request with its _meta. It answers unknown and removed methods with -32601.
func (s *Session) serve(ctx context.Context, r *jsonrpc.Request, meta jsontext.Value, asks bool) (any, error) {
	q, err := newRequest(ctx, r, meta, asks)
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
		return s.listen(q)
	case modern.TasksGet.Name(), modern.TasksUpdate.Name(), modern.TasksCancel.Name():
		if s.server.Tasks != nil {
			s.continueAll(nil)
			return s.serveTask(q)
		}
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
		"method %q is not in MCP %s, or not served", r.Method, modern.ProtocolVersion)
}

// Enter is [slots.Limit.Enter] for a request that may take long.
func (s *Session) Enter() (leave func(), err error) {
	if leave, err = s.open.Enter(""); err != nil {
		err = jsonrpc.Errorf(jsonrpc.CodeOverloaded, "overloaded: %v", err)
	}
	return leave, err
}

// Later answers a request in another goroutine with what answer returns. The caller bounds such requests: the peer does
// not bound what is answered later than on the read loop.
func (s *Session) Later(r *jsonrpc.Request, answer func() (any, error)) {
	reply := r.Responder()
	s.Go(func() {
		var result any
		err := stack.Guard(s.Log(), r.Method, func() (err error) { // the peer does so only on its own goroutines
			result, err = answer()
			return err
		})
		if sent := reply.Reply(result, err); sent != nil {
			s.Log().Debug(r.Method, "error", sent)
		}
	})
}

// The errors for a request and for a call that would exceed a limit.
const (
	tooMany    = "%d requests are under way; send this one again when one of them has ended or was cancelled"
	unfinished = "%d calls are unfinished, and no more may be; nothing was started"
)
