package codexserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Options change what a [Server] does. Nil is valid; the zero value of each
// field is its default.
type Options struct {
	// Approvals says how approvals are asked for and what happens when they
	// cannot be. The zero value denies whatever was not approved.
	Approvals elicit.Options
	// Rules answer some questions before anybody is asked. None by default.
	Rules Rules
	// Desk is a second place where questions are answered. None by default.
	Desk Desk
	// Record gets every question with its decision, a JSON object a line. It
	// is written to by one goroutine at a time. Default: none.
	Record io.Writer
	// Trace gets every message, secrets replaced. Default: none.
	Trace io.Writer
	// SessionTools offers the tools codex-list and codex-interrupt.
	SessionTools bool
	// LockedArguments are arguments of the tool codex that a call may not
	// choose, such as "config" and "sandbox": the tool does not offer them, and
	// a call that has one is refused. What fills in a call is mostly a model.
	// None by default.
	LockedArguments []string
	// TrustedCalls lets the argument config of the tool codex set every key of
	// the engine's configuration. By default it may set the model, how much it
	// reasons, the sandbox and the approval policy, and some others; what could
	// name a program, a provider or a file is refused or left out with a
	// warning.
	TrustedCalls bool
	// Folder is where conversations work whose caller names no folder; it is
	// absolute. Default: the client's first root, else the process's own folder.
	Folder string
	// Finish lets calls under way finish when the client's input ends. By
	// default those of a client that has said initialize are interrupted then;
	// input without initialize, such as a file of requests, is always finished.
	// A question that nobody is left to answer is decided by
	// Approvals.OnUnsupported.
	Finish bool
	// EngineName and EngineReason say in serverInfo which engine it is and why.
	// Default: nothing is said.
	EngineName, EngineReason string
	// Version is the server's version as clients see it, "dev" by default.
	Version string
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Server serves one engine to MCP clients. It is safe for concurrent use.
type Server struct {
	engine  engine.Engine
	options Options
	log     *slog.Logger
	record  record
}

// New returns a server for e.
func New(e engine.Engine, o *Options) *Server {
	s := &Server{engine: e}
	if o != nil {
		s.options = *o
	}
	if s.options.Version == "" {
		s.options.Version = "dev"
	}
	s.record.w = s.options.Record
	s.log = s.options.Logger
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Serve is one session with one client. It returns nil when the client's input
// (see [Options].Finish) or ctx has ended, every turn of the session has, and
// every answer that the client still took was written. Conversations belong to
// the session and are closed with it.
func (s *Server) Serve(ctx context.Context, t jsonrpc.Transport) error {
	session, end := context.WithCancelCause(ctx)
	defer end(nil)
	ss := newSession(session, s)
	handling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !s.options.Finish {
		ss.inputEnd.stop = func() { stop(jsonrpc.ErrClosed) }
	}
	defer ss.inputEnd.close()
	hooks := trace(s.options.Trace)
	hooks.InputEnd = ss.inputEnd.reach
	ss.peer = jsonrpc.NewPeer(t, ss.mux(), &jsonrpc.Options{
		Cancellation:   jsonrpc.MCPCancel,
		Inline:         inline(),
		LenientVersion: true, // as the server of 2025 did
		DrainTimeout:   -1,   // inputEnd decides
		Logger:         s.log,
		Hooks:          hooks,
	})
	err := ss.peer.Run(handling)
	end(jsonrpc.ErrClosed)
	ss.turns.Wait()
	if cerr := ss.conversations.close(); cerr != nil {
		s.log.Warn("closing conversations", "error", cerr)
	}
	if err != nil && handling.Err() == nil && !clientGone(err) {
		return fmt.Errorf("codexserver: %w", err)
	}
	return nil
}

// clientGone reports whether the connection broke because the client no longer
// reads, which is one of its ways to end a session.
func clientGone(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}
