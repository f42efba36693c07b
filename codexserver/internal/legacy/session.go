// Package legacy serves a connection that begins with a handshake, as MCP had it
// up to 2025-11-25: initialize, the tools, elicitation/create for approvals, roots
// and log levels; and the JSON-RPC methods of Codex's server of September 2025.
package legacy

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/pace"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Server is what the sessions of one server have in common. All fields must be
// set but the engine's name and reason.
type Server struct {
	Engine engine.Engine
	Tools  *tools.Table
	// Approvals says how clients are asked.
	Approvals elicit.Options
	// Version is the server's version, EngineName and EngineReason say which
	// engine runs the turns and why.
	Version, EngineName, EngineReason string
	// Folder is where threads work whose caller names no folder; "" is the client's
	// first root.
	Folder string
	// Finish lets calls finish when the input of a client has ended that has said
	// initialize.
	Finish bool
	// Relay holds the questions of clients that may not approve, for those of the
	// principal Approver; nil without one.
	Relay    *approval.Relay
	Approver string
	// MaxUnread is how many bytes may wait for a client.
	MaxUnread pace.Unread
	Logger    *slog.Logger
}

// Session is one connection to a client, from its first message to its last.
type Session struct {
	server    *Server
	log       *slog.Logger
	ctx       context.Context // ends with the session
	principal string          // whose session it is; "" where a server has one user
	peer      *jsonrpc.Peer
	threads   *thread.Share
	jobs      *tools.Jobs
	turns     sync.WaitGroup // turns that no request waits for
	end       inputEnd
	stop      func() // ends the handling of requests
	unasked   bool   // the client may not approve
	pace      *pace.Pace

	limit             limit
	settings, account lane

	mu      sync.Mutex
	client  *mcptypes.InitializeRequestParams // nil until initialize
	version string                            // of MCP, "" until initialize
	level   mcptypes.LoggingLevel
	able    bool          // the client shows forms
	asker   *elicit.Asker // of what the client said in initialize; it cannot be asked before
}

// NewSession returns a session of a principal whose turns end with ctx, with the
// threads and jobs of its client. It serves nothing before
// [Session.Connect]. It calls stop when the client has gone, or reads nothing, and
// its calls should end.
func NewSession(ctx context.Context, s *Server, principal string, threads *thread.Share, jobs *tools.Jobs, p *pace.Pace, stop func()) *Session {
	ss := &Session{server: s, log: s.Logger, ctx: ctx, principal: principal, threads: threads, jobs: jobs, pace: p, level: mcptypes.LoggingLevelWarning, stop: stop}
	if !s.Finish {
		ss.end.stop = stop
	}
	ss.asker = elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &s.Approvals)
	return ss
}

// Connect makes p the client's side. Its handler is [Session.Handler].
func (ss *Session) Connect(p *jsonrpc.Peer) { ss.peer = p }

// AskNothing keeps questions from the client, whatever it declares. It is called
// before Connect.
func (ss *Session) AskNothing() { ss.unasked = true }

// InputEnded notes that the client sends nothing more. It is a hook of the peer.
func (ss *Session) InputEnded(error) { ss.end.reach() }

// Close waits for the turns of the session, whose context must have ended.
func (ss *Session) Close() {
	ss.end.close()
	ss.turns.Wait()
}

// Begin notes that the client has begun a session without initialize.
func (ss *Session) Begin() { ss.end.begin() }

// speaks reports whether the session's version of MCP is this one or a newer.
// Before initialize it is taken to be.
func (ss *Session) speaks(version string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.version == "" || ss.version >= version
}

// canAsk reports whether the client shows forms.
func (ss *Session) canAsk() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.able
}

// notify queues a notification. It does not go out when the connection is closed or
// too much waits already.
func (ss *Session) notify(method string, params any) {
	if err := ss.peer.Notify(context.Background(), method, params); err != nil {
		ss.log.Debug("notification not sent", "method", method, "error", err)
	}
}

// warn sends the client a log message of the level warning (MCP 2025-06-18,
// server/utilities/logging).
func (ss *Session) warn(data any) {
	ss.mu.Lock()
	wanted := severity(ss.level) <= severity(mcptypes.LoggingLevelWarning)
	ss.mu.Unlock()
	if !wanted {
		return
	}
	raw, err := json.Marshal(data)
	if err != nil {
		ss.log.Error("log message", "error", err)
		return
	}
	logger := "codex"
	ss.notify(mcptypes.NotificationsMessage.Name(), &mcptypes.LoggingMessageNotificationParams{
		Level: mcptypes.LoggingLevelWarning, Logger: &logger, Data: raw,
	})
}

// remarks sends the client, as log messages, what a person should read of a turn.
type remarks struct{ session *Session }

// Ready implements [thread.Watcher].
func (r remarks) Ready(ctx context.Context, _ protocol.EventMsg) {
	r.session.pace.Wait(ctx, r.session.peer, r.session.server.MaxUnread)
}

// Event implements [thread.Watcher]: the events of the turn go to the listeners.
func (remarks) Event(string, protocol.Event) {}

// Asked implements [thread.Watcher]: the client is a place of its own.
func (remarks) Asked(*approval.Request) {}

// Decided implements [thread.Watcher].
func (r remarks) Decided(_ *approval.Request, d approval.Decision) {
	if d.Level >= slog.LevelWarn {
		r.session.warn(d.Detail)
	}
}

// Notice implements [thread.Watcher].
func (r remarks) Notice(words string) { r.session.warn(words) }
