package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Server has what the sessions of one server share. All fields but EngineName and
// EngineReason must be set, unless they have a default.
type LegacyServer struct {
	Engine engine.Engine
	Tools  *mcptool.Table
	// Approvals says how clients are asked.
	Approvals elicit.Options
	// Version is the server's version. EngineName is the engine that runs the turns, and
	// EngineReason why it was chosen.
	Version, EngineName, EngineReason string
	// Folder is the working folder of a thread whose caller does not name one. Default:
	// the client's first root.
	Folder string
	// Finish lets calls finish after the end of a client's input, even if the client has
	// sent initialize.
	Finish bool
	// Relay takes the questions of clients that may not approve to clients of the
	// principal Approver. It is nil if there is no approver.
	Relay    *board.Relay
	Approver string
	// MaxUnread is how many bytes may wait for a client.
	MaxUnread Unread
	Logger    *slog.Logger
}

// Session is one connection to a client, from its first message to its last.
type LegacySession struct {
	server    *LegacyServer
	log       *slog.Logger
	ctx       context.Context // ends with the session
	principal string          // the owner of the session; "" if the server has one user
	peer      *jsonrpc.Peer
	threads   *thread.Share
	jobs      *mcptool.Jobs
	turns     sync.WaitGroup // turns that no request waits for
	end       inputEnd
	stop      func() // ends the handling of requests
	unasked   bool   // the client may not approve
	pace      *Pace

	limit             limit
	settings, account lane

	mu      sync.Mutex
	client  *mcptypes.InitializeRequestParams // nil until initialize
	version string                            // of MCP, "" until initialize
	level   mcptypes.LoggingLevel
	able    bool          // the client supports elicitation
	asker   *elicit.Asker // from initialize on; before, the client cannot be asked
}

// NewSession returns a session of a principal, with the threads and jobs of its client.
// Its turns end with ctx. It must not serve before [Session.Connect]. It calls stop when
// its calls should end, because the client has disconnected or does not read.
func NewLegacySession(ctx context.Context, s *LegacyServer, principal string, threads *thread.Share, jobs *mcptool.Jobs, p *Pace, stop func()) *LegacySession {
	ss := &LegacySession{server: s, log: s.Logger, ctx: ctx, principal: principal, threads: threads, jobs: jobs, pace: p, level: mcptypes.LoggingLevelWarning, stop: stop}
	if !s.Finish {
		ss.end.stop = stop
	}
	ss.asker = elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &s.Approvals)
	return ss
}

// Connect sets the peer of the client. The peer's handler is [Session.Handler].
func (ss *LegacySession) Connect(p *jsonrpc.Peer) { ss.peer = p }

// AskNothing prevents questions to the client, even if it supports them. It must be called
// before Connect.
func (ss *LegacySession) AskNothing() { ss.unasked = true }

// InputEnded records the end of the client's input. It is a hook of the peer.
func (ss *LegacySession) InputEnded(error) { ss.end.reach() }

// Close waits for the turns of the session, whose context must have ended.
func (ss *LegacySession) Close() {
	ss.end.close()
	ss.turns.Wait()
}

// Begin records that the client has begun a session without initialize.
func (ss *LegacySession) Begin() { ss.end.begin() }

// speaks reports whether the session's version of MCP is version or a newer one. It returns
// true before initialize.
func (ss *LegacySession) speaks(version string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.version == "" || ss.version >= version
}

// canAsk reports whether the client supports elicitation.
func (ss *LegacySession) canAsk() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.able
}

// notify queues a notification. It drops it if the connection is closed or too many bytes
// are waiting.
func (ss *LegacySession) notify(method string, params any) {
	if err := ss.peer.Notify(context.Background(), method, params); err != nil {
		ss.log.Debug("notification not sent", "method", method, "error", err)
	}
}

// warn sends the client a log message of the level warning (MCP 2025-06-18,
// server/utilities/logging).
func (ss *LegacySession) warn(words string) {
	ss.mu.Lock()
	wanted := mcptool.Logs(ss.level, mcptypes.LoggingLevelWarning)
	ss.mu.Unlock()
	if !wanted {
		return
	}
	raw, err := json.Marshal(elicit.OneLine(words, 0))
	if err != nil {
		ss.log.Error("log message", "error", err)
		return
	}
	logger := "codex"
	ss.notify(mcptypes.NotificationsMessage.Name(), &mcptypes.LoggingMessageNotificationParams{
		Level: mcptypes.LoggingLevelWarning, Logger: &logger, Data: raw,
	})
}

// remarks sends warnings about a turn to the client as log messages.
type remarks struct{ session *LegacySession }

// Ready implements [thread.Watcher].
func (r remarks) Ready(ctx context.Context, _ protocol.EventMsg) {
	r.session.pace.Wait(ctx, r.session.peer, r.session.server.MaxUnread)
}

// Event implements [thread.Watcher]. It does nothing: the listeners receive the events.
func (remarks) Event(string, protocol.Event) {}

// Asked implements [thread.Watcher]. It does nothing: a place asks the client.
func (remarks) Asked(*approval.Request) {}

// Decided implements [thread.Watcher].
func (r remarks) Decided(_ *approval.Request, d approval.Decision) {
	if d.Level >= slog.LevelWarn {
		r.session.warn(d.Detail)
	}
}

// Notice implements [thread.Watcher].
func (r remarks) Notice(words string) { r.session.warn(words) }
