package mcp

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Server has what the clients of one server share. All fields must be set except EngineName,
// EngineReason, and those with a default.
type Server struct {
	Tools *tools.Table
	// Approvals says how clients are asked, and how answers are read.
	Approvals elicit.Options
	// Asking says which clients are asked, and what answers of no person mean.
	Asking setting.Asking
	// Version is the server's version. EngineName is the engine that runs the turns, and
	// EngineReason why it was chosen.
	Version, EngineName, EngineReason string
	// Tasks are the tasks of all sessions. Nil disables tasks.
	Tasks *Tasks
	// MaxUnread is how many bytes may wait for a client that reads slowly. From an eighth on, a turn
	// waits for its client. Beyond it, turns that cannot wait lose their deltas. The session ends at
	// twice as many, because only deltas may be left out.
	MaxUnread int
	Logger    *slog.Logger
}

// engineInfo returns the engine as in the server's information, or nil.
func (s *Server) engineInfo() json.RawMessage {
	if s.EngineName == "" {
		return nil
	}
	return fmt.Appendf(nil, `{"name":%s,"reason":%s}`, quote(s.EngineName), quote(s.EngineReason))
}

// quote returns a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports invalid UTF-8
	return json.RawMessage(b)
}

// meta returns the _meta of every result of 2026-07-28.
func (s *Server) meta() *modern.ResultMetaObject {
	m := &modern.ResultMetaObject{
		ServerInfo: &modern.Implementation{Name: "codex-mcp", Title: new(s.Tools.Title()), Version: s.Version},
	}
	if info := s.engineInfo(); info != nil {
		m.Extra = map[string]json.RawMessage{"io.github.codexmcp/engine": info}
	}
	return m
}
