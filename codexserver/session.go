package codexserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// session is one connection to a client, from its first message to its last.
type session struct {
	server        *Server
	id            string // unlike that of any other session
	log           *slog.Logger
	ctx           context.Context // ends with the session
	peer          *jsonrpc.Peer
	conversations conversations
	inputEnd      inputEnd
	reviving      sync.Mutex     // one conversation at a time is taken up from its rollout
	turns         sync.WaitGroup // turns that no request waits for

	mu      sync.Mutex
	client  *mcptypes.InitializeRequestParams // nil until initialize
	version string                            // of MCP, "" until initialize
	level   mcptypes.LoggingLevel
	able    bool          // the client shows forms
	asker   *elicit.Asker // of what the client said in initialize; nobody can be asked before
}

func newSession(ctx context.Context, s *Server) *session {
	ss := &session{server: s, id: rand.Text(), log: s.log, ctx: ctx, level: mcptypes.LoggingLevelWarning}
	ss.asker = elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &s.options.Approvals)
	return ss
}

// speaks reports whether the session's version of MCP is this one or a newer.
// Before initialize it is taken to be.
func (ss *session) speaks(version string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.version == "" || ss.version >= version
}

// canAsk reports whether the client shows forms.
func (ss *session) canAsk() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.able
}

func (ss *session) theAsker() *elicit.Asker {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.asker
}

// notify queues a notification; only a closed connection keeps it from going out.
func (ss *session) notify(method string, params any) {
	if err := ss.peer.Notify(context.Background(), method, params); err != nil {
		ss.log.Debug("notification not sent", "method", method, "error", err)
	}
}

// warn tells the client of something it did not ask about (MCP 2025-06-18,
// server/utilities/logging).
func (ss *session) warn(data any) {
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
