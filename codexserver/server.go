package codexserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/legacy"
	"github.com/codexmcp/codexmcp/codexserver/internal/modern"
	"github.com/codexmcp/codexmcp/codexserver/internal/pace"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/taskfile"
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
	// Approver is the name of the principal that decides for principals whose clients
	// are not asked (see [WithoutQuestions]): their questions wait until one of its
	// clients calls codex-wait. By default Approvals.OnUnsupported decides.
	Approver string
	// Record gets every question with its decision, a JSON object a line. It
	// is written to by one goroutine at a time. Default: none.
	Record io.Writer
	// Trace gets every message, secrets replaced. Default: none.
	Trace io.Writer
	// Tools are the tools to offer besides codex and codex-reply, such as "codex-wait".
	// Arguments whose results are had with a tool that is not offered are refused.
	// Default, when nil: all that the engine can serve.
	Tools []string
	// AlwaysLoad asks clients that load tools on demand to load these at once.
	AlwaysLoad bool
	// Home is a folder for what outlives the process: tasks, the key that seals
	// the state of calls, and git worktrees, in folders below it whose names begin
	// with codex-mcp. They are made on first use. By default nothing outlives the
	// process, calls do not become tasks, and conversations get no worktrees.
	Home string
	// MaxResult bounds the structured content of a result, in bytes of JSON.
	// Default: 80,000.
	MaxResult int
	// Stall is how long a model may be silent before progress, tasks and codex-wait
	// call it stuck; nothing is ended by that. Default: five minutes; less than 0 is
	// for ever.
	Stall time.Duration
	// Tasks says how calls of clients that poll become tasks (MCP extension
	// io.modelcontextprotocol/tasks).
	Tasks TaskOptions
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
	// Folders bound what a call may name: where its conversation works, what it
	// makes writable, its images and its repository. Paths are judged by where they
	// lead. They are absolute; the first one is also the default of Folder. Default,
	// when nil: no bound.
	Folders []string
	// Turns is how many turns are under way or queued at a time; a call that would
	// begin one more gets an error result. Default: no bound.
	Turns int
	// Finish lets calls under way finish when the client's input ends. By default those
	// of a client that has said initialize are interrupted then; input without
	// initialize, such as a file of requests, is always finished. Approvals.OnUnsupported
	// decides a question that no client is left to answer.
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
	// Observer sees requests, turns and what happens in them. None by default.
	Observer Observer
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// TaskOptions say how calls become tasks. The zero value is the default.
type TaskOptions struct {
	// Never keeps calls synchronous.
	Never bool
	// Grace is how long a call is waited for before it becomes a task. Default: a second;
	// a negative value means no time.
	Grace time.Duration
	// Limit is how many tasks of one principal are unfinished at a time. Default: 64.
	Limit int
}

const (
	defaultMaxUnread = 64 << 20
	defaultGrace     = time.Second
	defaultTasks     = 64
	maxLooks         = 8 // at folders, at a time
)

// Server serves one engine to MCP clients. It is safe for concurrent use.
type Server struct {
	eras
	deciding eras   // for an approver that only decides
	approver string // "" without one
	threads  *thread.Table
	trace    jsonrpc.Hooks // one lock for the messages of every session
	log      *slog.Logger

	observer Observer // nil without one
}

// eras is what serves the clients of each era of MCP.
type eras struct {
	legacy *legacy.Server
	modern *modern.Server
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
	approvals := &approval.Options{
		Questions: o.Approvals, Rules: o.Rules, Desk: o.Desk, Approver: o.Approver, Record: approval.NewRecord(o.Record), Logger: log,
	}
	threads := thread.NewTable(e, approvals)
	_, streams := e.(engine.Streamer)
	watch := report.Options{Wait: streams, Looks: make(chan struct{}, maxLooks), Logger: log}
	if o.Home != "" {
		watch.Scratch = filepath.Join(o.Home, "tmp")
		threads.KeepIn(watch.Scratch)
	}
	table := tools.New(e, tools.Options{
		Report: watch, MaxResult: max(o.MaxResult, 0), Stall: o.Stall,
		Tools: o.Tools, AlwaysLoad: o.AlwaysLoad, LockedArguments: o.LockedArguments, TrustedCalls: o.TrustedCalls,
		Home: o.Home, Folders: o.Folders, Turns: max(o.Turns, 0),
	})
	folder := o.Folder
	if folder == "" && len(o.Folders) > 0 {
		folder = o.Folders[0]
	}
	unread := pace.Unread(cmp.Or(max(o.MaxUnread, 0), defaultMaxUnread))
	seal := &modern.Seal{Logger: log}
	if o.Home != "" {
		seal.File = filepath.Join(o.Home, "codex-mcp", "key")
	}
	var tasks *modern.Tasks
	if o.Home != "" && !o.Tasks.Never {
		tasks = modern.NewTasks(taskfile.New(o.Home, &taskfile.Options{Logger: log}), modern.TaskOptions{
			Grace: max(cmp.Or(o.Tasks.Grace, defaultGrace), 0),
			Limit: cmp.Or(max(o.Tasks.Limit, 0), defaultTasks),
		}, log.Warn)
	}
	var relay *approval.Relay
	if o.Approver != "" {
		relay = approval.NewRelay(approvals)
	}
	eras := func(table *tools.Table) eras {
		return eras{
			modern: &modern.Server{
				Tools:        table,
				Approvals:    o.Approvals,
				Version:      cmp.Or(o.Version, "dev"),
				EngineName:   o.EngineName,
				EngineReason: o.EngineReason,
				Folder:       folder,
				Seal:         seal,
				Tasks:        tasks,
				Relay:        relay,
				Approver:     o.Approver,
				MaxUnread:    unread,
				Logger:       log,
			},
			legacy: &legacy.Server{
				Engine:       e,
				Tools:        table,
				Approvals:    o.Approvals,
				Version:      cmp.Or(o.Version, "dev"),
				EngineName:   o.EngineName,
				EngineReason: o.EngineReason,
				Folder:       folder,
				Finish:       o.Finish,
				Relay:        relay,
				Approver:     o.Approver,
				MaxUnread:    unread,
				Logger:       log,
			},
		}
	}
	return &Server{
		eras:     eras(table),
		deciding: eras(table.Deciding()),
		approver: o.Approver,
		threads:  threads,
		trace:    *trace(o.Trace),
		log:      log,
		observer: o.Observer,
	}
}

// Serve is one session with one client. It returns nil when the client's input
// (see [Options].Finish) or ctx has ended, every turn of the session has, and
// every answer that the client still took was written. A thread is closed with the
// last session that has used it.
func (s *Server) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return s.serve(ctx, nil, t)
}

// serve is [Server.Serve]. A client of a principal does not have the methods of
// September 2025.
func (s *Server) serve(ctx context.Context, p *Principal, t jsonrpc.Transport) error {
	principal, serves := "", s.eras
	if p != nil {
		principal, serves = p.name, p.eras
	}
	turns, end := context.WithCancelCause(ctx)
	defer end(nil)
	handling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	threads, jobs, pace := s.threads.Share(principal), tools.NewJobs(turns), &pace.Pace{}
	if p != nil {
		defer p.joined(jobs)()
	}
	session := legacy.NewSession(turns, serves.legacy, principal, threads, jobs, pace, func() { stop(jsonrpc.ErrClosed) })
	if !asks(ctx) {
		session.AskNothing()
	}
	own := modern.NewSession(turns, serves.modern, principal, false, threads, jobs, pace)
	hooks := s.trace
	hooks.InputEnd = session.InputEnded
	o := s.peerOptions(&hooks)
	o.Inline, o.MaxConcurrent = append(legacy.Inline(), o.Inline...), legacy.MaxConcurrent+o.MaxConcurrent
	peer := jsonrpc.NewPeer(t, s.observed(principal, t, byEra(session.Handler(p == nil), session, own, asks(ctx))), o)
	session.Connect(peer)
	err := peer.Run(handling)
	end(jsonrpc.ErrClosed)
	own.Wait()
	s.modern.Tasks.Wait()
	jobs.Wait()
	session.Close()
	if cerr := threads.Close(); cerr != nil {
		s.log.Warn("closing threads", "error", cerr)
	}
	return verdict(handling, err)
}

// peerOptions are those of a peer that has requests of today's era alone.
func (s *Server) peerOptions(hooks *jsonrpc.Hooks) *jsonrpc.Options {
	return &jsonrpc.Options{
		Cancellation:   jsonrpc.MCPCancel,
		Inline:         modern.Inline(),
		MaxConcurrent:  modern.MaxConcurrent,
		Egress:         jsonrpc.EgressOptions{HardLimit: s.legacy.MaxUnread.End()},
		LenientVersion: true, // as the server of 2025 did
		DrainTimeout:   -1,   // the session decides
		Logger:         s.log,
		Hooks:          hooks,
	}
}

// verdict is what serving returns when its peer has returned err.
func verdict(handling context.Context, err error) error {
	if err != nil && handling.Err() == nil && !clientGone(err) {
		return fmt.Errorf("codexserver: %w", err)
	}
	return nil
}

// byEra returns the handler of both eras of MCP. Each request says by itself of
// which one it is.
func byEra(before jsonrpc.Handler, old *legacy.Session, own *modern.Session, asks bool) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return before.ServeRPC(ctx, r)
		}
		meta := modern.Meta(r.Params)
		if meta == nil {
			return before.ServeRPC(ctx, r)
		}
		old.Begin()
		return own.ServeRPC(ctx, r, meta, asks)
	})
}

// clientGone reports whether the connection broke because the client no longer
// reads, which is one of its ways to end a session.
func clientGone(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}
