package codexserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/legacy"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
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
	Rules approval.Rules
	// Desk is a second place where questions are answered. None by default.
	Desk approval.Desk
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
	// MaxUnread is how many bytes of events may wait for a client that does not
	// read. A turn waits for its client at an eighth of it. Turns that cannot wait
	// (see [engine.Streamer]) lose their deltas beyond it, of which an event says
	// how many; at twice as much the session ends. Default: 64 MiB.
	MaxUnread int
	// EngineName and EngineReason say in serverInfo which engine it is and why.
	// Default: nothing is said.
	EngineName, EngineReason string
	// Version is the server's version as clients see it, "dev" by default.
	Version string
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

const defaultMaxUnread = 64 << 20

// Server serves one engine to MCP clients. It is safe for concurrent use.
type Server struct {
	legacy *legacy.Server
	trace  jsonrpc.Hooks // one lock for the messages of every session
	log    *slog.Logger
}

// New returns a server for e.
func New(e engine.Engine, o *Options) *Server {
	if o == nil {
		o = &Options{}
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	threads := thread.NewTable(e, &approval.Options{
		Questions: o.Approvals, Rules: o.Rules, Desk: o.Desk, Record: approval.NewRecord(o.Record), Logger: log,
	})
	return &Server{
		legacy: &legacy.Server{
			Threads:      threads,
			Tools:        tools.New(e, tools.Options{SessionTools: o.SessionTools, LockedArguments: o.LockedArguments, TrustedCalls: o.TrustedCalls}),
			Approvals:    o.Approvals,
			Version:      cmp.Or(o.Version, "dev"),
			EngineName:   o.EngineName,
			EngineReason: o.EngineReason,
			Folder:       o.Folder,
			Finish:       o.Finish,
			MaxUnread:    cmp.Or(max(o.MaxUnread, 0), defaultMaxUnread),
			Logger:       log,
		},
		trace: *trace(o.Trace),
		log:   log,
	}
}

// Serve is one session with one client. It returns nil when the client's input
// (see [Options].Finish) or ctx has ended, every turn of the session has, and
// every answer that the client still took was written. A thread is closed with the
// last session that has used it.
func (s *Server) Serve(ctx context.Context, t jsonrpc.Transport) error {
	turns, end := context.WithCancelCause(ctx)
	defer end(nil)
	handling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	session := legacy.NewSession(turns, s.legacy, func() { stop(jsonrpc.ErrClosed) })
	hooks := s.trace
	hooks.InputEnd = session.InputEnded
	peer := jsonrpc.NewPeer(t, session.Handler(), &jsonrpc.Options{
		Cancellation:   jsonrpc.MCPCancel,
		Inline:         legacy.Inline(),
		MaxConcurrent:  legacy.MaxConcurrent,
		Egress:         s.legacy.Egress(),
		LenientVersion: true, // as the server of 2025 did
		DrainTimeout:   -1,   // the session decides
		Logger:         s.log,
		Hooks:          &hooks,
	})
	session.Connect(peer)
	err := peer.Run(handling)
	end(jsonrpc.ErrClosed)
	if cerr := session.Close(); cerr != nil {
		s.log.Warn("closing threads", "error", cerr)
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
