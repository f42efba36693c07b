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
	"sync/atomic"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/methods"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/internal/trace"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Options change what a [Server] does. Nil is valid; the zero value of each
// field is its default.
type Options struct {
	// Approvals says how to ask for approvals, and what happens if that is not possible.
	// The zero value denies everything that was not approved.
	Approvals elicit.Options
	// Asking says which clients are asked, and what an answer means that no person gave. The
	// zero value asks all clients, and the Desk.
	Asking setting.Asking
	// Rules answer some questions before a person is asked. None by default.
	Rules approval.Rules
	// Desk is a second place where questions are answered. None by default.
	Desk approval.Desk
	// Record receives every question with its decision, and the beginning and the end of every
	// command, patch and tool, one JSON object a line. One goroutine at a time writes to it.
	// Default: none.
	Record io.Writer
	// Trace receives every message, with secrets replaced. Default: none.
	Trace io.Writer
	// Home is a folder for data that outlives the process: tasks and git worktrees. They are in subfolders whose names begin with
	// codex-mcp, which are made on first use. Without Home, calls do not become tasks and
	// make no worktrees.
	Home string
	// Store keeps tasks, decisions and the rules that people accepted elsewhere, too, so that
	// they outlive the machine. It is that of Home, and the engine must have the same. While
	// it takes no writes, calls that would begin a turn are refused, and approvals do not
	// count. Default: they are only files.
	Store safefile.Mirror
	// Calls say what calls of the tools may do, and what they return.
	Calls CallOptions
	// Changes say how the changes of a turn are found.
	Changes ChangeOptions
	// Tasks says how calls of clients with tasks (MCP extension
	// io.modelcontextprotocol/tasks) become tasks.
	Tasks TaskOptions
	// Folder is the working folder of conversations whose caller names none, an absolute
	// path. Default: the first of Calls.Folders, else the client's first root, else the
	// process's working folder.
	Folder string
	// MaxUnread is how many bytes of events may wait for a client that does not read. A
	// turn waits for its client from an eighth of that on. Turns that cannot wait (see
	// [engine.Traits].Streams) lose deltas beyond MaxUnread, and an event reports how many. At
	// twice as much the session ends. Default: 64 MiB.
	MaxUnread int
	// EngineName is the engine in serverInfo, and EngineReason is why it was chosen.
	// Default: left out.
	EngineName, EngineReason string
	// Version is the server's version that clients see. Default: "dev".
	Version string
	// Observer receives requests and turns, for metrics and traces. None by default.
	Observer Observer
	// Logger logs what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// The types of settings that are tables of their own.
type (
	// CallOptions say what calls of the tools may do, and what they return.
	CallOptions = setting.Calls
	// ChangeOptions say how the changes of a turn are found.
	ChangeOptions = setting.Changes
	// TaskOptions say how calls become tasks.
	TaskOptions = setting.Tasks
)

const (
	defaultMaxUnread = 64 << 20
	maxLooks         = 8 // folders compared at a time
)

// Server serves one engine to MCP clients. It is safe for concurrent use.
type Server struct {
	wire    *mcp.Server
	methods methods.Server
	threads *thread.Table
	trace   jsonrpc.Hooks // shared by all sessions, so that lines do not mix
	log     *slog.Logger

	observer Observer     // nil without one
	heard    atomic.Int64 // when a client sent something last, in nanoseconds; 0 before

	guests *tools.Turns // of the clients of ServeFrom
}

// New returns a server for e.
func New(e engine.Engine, o *Options) *Server {
	o = cmp.Or(o, &Options{})
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	asking := o.Approvals
	asking.Elsewhere = cmp.Or(asking.Elsewhere, "in the transcript, which your agent can show")
	approvals := &approve.Options{
		Questions: asking, Rules: o.Rules, Desk: o.Desk, Record: record.To(o.record()), Logger: log,
	}
	traits := engine.TraitsOf(e)
	if o.Home != "" {
		approvals.Kept = rulefile.New(o.Home, &rulefile.Options{Mirror: o.Store, Writable: traits.Reach})
	}
	threads := thread.NewTable(e, approvals)
	if o.Observer != nil {
		threads.Observe = func(id string) thread.TurnObserver { return o.Observer.Turn(id) }
	}
	watch := changes.Options{
		Announced: traits.Announces && !traits.Streams, Looks: make(slots.Slots, maxLooks), Logger: log,
		Off: o.Changes.Read != nil && !*o.Changes.Read,
	}
	watch.Withheld = func(dir string) func(path string) error { return engine.Withheld(e, dir) }
	if o.Home != "" {
		watch.Scratch = git.Scratch{Dir: filepath.Join(o.Home, "tmp"), Programs: &box.Programs{More: traits.Reach}}
		threads.KeepIn(watch.Scratch.Dir)
		threads.NoteIn(filepath.Join(o.Home, "codex-mcp", "turns"))
		watch.Room = safefile.NewReserve(o.Home, changes.TurnRoom)
	}
	tasked := o.Home != "" && o.Tasks.Resolved().Mode != setting.TasksNever
	folder := o.Folder
	if folder == "" && len(o.Calls.Folders) > 0 {
		folder = o.Calls.Folders[0]
	}
	table := tools.New(e, &tools.Options{
		Calls: o.Calls, Report: watch, Folder: folder, Home: o.Home, Store: o.Store,
		Continues: tasked && *o.Tasks.Resolved().Resume,
	})
	var tasks *mcp.Tasks
	if tasked {
		tasks = mcp.NewTasks(taskfile.New(o.Home, o.Store), o.Tasks)
	}
	wire := &mcp.Server{
		Tools:        table,
		Approvals:    asking,
		Asking:       o.Asking,
		Version:      cmp.Or(o.Version, "dev"),
		EngineName:   o.EngineName,
		EngineReason: o.EngineReason,
		Tasks:        tasks,
		MaxUnread:    cmp.Or(max(o.MaxUnread, 0), defaultMaxUnread),
		Logger:       log,
	}
	return &Server{
		wire:     wire,
		methods:  methods.Server{Engine: e, Tools: table, Approvals: asking, Folder: folder},
		threads:  threads,
		trace:    *trace.Hooks(o.Trace),
		log:      log,
		observer: o.Observer,
		guests:   tools.NewSharedTurns(context.Background(), threads.Share("")),
	}
}

// record returns where decisions are written, nil for nowhere. The store is first: it decides
// whether an approval counts.
func (o *Options) record() io.Writer {
	switch kept := safefile.MirrorOf(o.Store).Decisions(); {
	case kept == nil:
		return o.Record
	case o.Record == nil:
		return kept
	default:
		return io.MultiWriter(kept, o.Record)
	}
}

// Serve serves one client until its input or ctx ends. Calls that run when the input ends are
// interrupted if the client has sent initialize; input without initialize, such as a file of
// requests, is finished, and Approvals.OnUnsupported decides its questions. Serve returns nil
// after every turn of the session has ended and every answer that the client still reads
// is written. A thread is closed with the last session that used it.
func (s *Server) Serve(ctx context.Context, t jsonrpc.Transport) error {
	life, end := context.WithCancelCause(ctx)
	session := s.wire.NewSession(life, s.threads.Share(""), tools.NewTurns(life))
	c := s.connect(ctx, session, session)
	err := c.run(t, c.methods()...)
	end(jsonrpc.ErrClosed)
	return c.close(err)
}

// connection serves one client, which it may have with and without a handshake.
type connection struct {
	server   *Server
	client   *mcp.Connection
	mux      *jsonrpc.Mux
	handling context.Context // of requests
	stop     context.CancelCauseFunc
}

// connect returns a connection of the client of a session. Turns of servers that were killed continue in the session home.
func (s *Server) connect(ctx context.Context, session, home *mcp.Session) *connection {
	handling, stop := context.WithCancelCause(ctx)
	client := session.Connect(home, approval.MayAsk(ctx), func() { stop(jsonrpc.ErrClosed) })
	return &connection{s, client, client.Mux(), handling, stop}
}

// methods adds the methods of September 2025, and returns those that are handled on the read loop.
func (c *connection) methods() (inline []string) {
	c.server.methods.Register(c.mux, c.client)
	return methods.Inline()
}

// run handles the client's requests until its input, or the context, has ended.
func (c *connection) run(t jsonrpc.Transport, inline ...string) error {
	handler := c.server.observed(c.client.Handler(c.mux))
	return c.client.Peer(t, handler, c.server.trace, inline...).Run(c.handling)
}

// close closes the session, and returns the error of Serve for that of run.
func (c *connection) close(err error) error {
	if err := c.client.Close(); err != nil {
		c.server.log.Warn("closing threads", "error", err)
	}
	err = verdict(c.handling, err)
	c.stop(nil) // verdict has looked at the context
	return err
}

// verdict returns the error of Serve for the error of its peer. The end of the context, or
// of the client, is not an error.
func verdict(handling context.Context, err error) error {
	if err != nil && handling.Err() == nil && !clientGone(err) {
		return fmt.Errorf("codexserver: %w", err)
	}
	return nil
}

// clientGone reports whether a write failed because the client has closed its end, which
// is one way to end a session.
func clientGone(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}
