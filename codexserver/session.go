package codexserver

import (
	"context"
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
	log           *slog.Logger
	peer          *jsonrpc.Peer
	conversations conversations

	mu     sync.Mutex
	client *mcptypes.InitializeRequestParams // nil until initialize
	level  mcptypes.LoggingLevel
	asker  *elicit.Asker // of what the client said in initialize; nobody can be asked before
}

func newSession(s *Server) *session {
	ss := &session{server: s, log: s.log, level: mcptypes.LoggingLevelWarning}
	ss.asker = elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &s.options.Approvals)
	return ss
}

// mux routes the methods that this server has; the peer answers any other
// request with -32601.
func (ss *session) mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(m, ss.initialize)
	mcptypes.Ping.Handle(m, ss.ping)
	mcptypes.ToolsList.Handle(m, ss.listTools)
	mcptypes.LoggingSetLevel.Handle(m, ss.setLevel)
	m.Handle(mcptypes.ToolsCall.Name(), jsonrpc.HandlerFunc(ss.callTool))
	return m
}

// ask puts a question to the client and logs how it ended.
func (ss *session) ask(ctx context.Context, q *elicit.Question) elicit.Outcome {
	ss.mu.Lock()
	asker := ss.asker
	ss.mu.Unlock()
	out := asker.Ask(ctx, q)
	ss.log.Log(ctx, out.Level, "approval", "decision", out.Decision, "reason", out.Reason, "detail", out.Detail)
	if out.Level >= slog.LevelWarn {
		ss.warn(out.Detail)
	}
	return out
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
