package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
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
	// Folder is the working folder of a thread whose caller does not name one. Default:
	// the client's first root, or else [tools.ProjectFolder].
	Folder string
	// Tasks are the tasks of all sessions. Nil disables tasks.
	Tasks *Tasks
	// MaxUnread is how many bytes may wait for a client.
	MaxUnread Unread
	Logger    *slog.Logger

	resultMeta atomic.Pointer[modern.ResultMetaObject] // of every result of 2026-07-28
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

// Client is a client in both eras: its threads, its turns, and what waits for it.
type Client struct {
	server  *Server
	ctx     context.Context // of the turns
	threads *thread.Share   // and the principal
	hosts   *approve.Hosts
	turns   *tools.Turns
	running sync.WaitGroup // what outlives its request
	pace    pace
	home    *ModernSession  // where turns of servers that were killed continue; nil for nowhere
	present context.Context // until Leave
	leave   context.CancelFunc
}

// ContinueIn makes turns of servers that were killed continue in a session, after the first
// call of this client.
func (c *Client) ContinueIn(s *ModernSession) { c.home = s }

// principal returns the owner of the turns, "" if the server has one user.
func (c *Client) principal() string { return c.threads.Principal() }

// NewClient returns a client of the principal of threads, which must be closed. Its turns end with
// ctx. With turns, unless nil, its turns in the background do not, and it finds those of the clients
// that share them.
func (s *Server) NewClient(ctx context.Context, threads *thread.Share, turns *tools.Turns) *Client {
	if turns == nil {
		turns = tools.NewTurns(ctx)
	}
	c := &Client{server: s, ctx: ctx, threads: threads, turns: turns, hosts: approve.NewHosts(s.Asking)}
	c.present, c.leave = context.WithCancel(context.Background())
	return c
}

// Leave ends the calls that the client waits for. Tasks and turns in the background
// continue, and other clients answer their questions.
func (c *Client) Leave() {
	c.hosts.Leave()
	c.leave()
}

// Busy reports whether a turn is running or queued.
func (c *Client) Busy() bool { return c.turns.Busy() }

// Close waits for the turns of the client, and closes its threads. They end by themselves, or
// with the client's context.
func (c *Client) Close() error {
	c.hosts.Leave()
	defer c.leave()
	c.running.Wait()
	c.server.Tasks.Wait()
	if !c.turns.Stays() {
		c.turns.Wait()
	}
	return c.threads.Close()
}

// callID returns a request's id, a string or a number, as text.
func callID(id jsonrpc.ID) string {
	if s, ok := id.Str(); ok {
		return s
	}
	return id.String()
}

// folder returns the working folder of a thread for which neither its caller nor its client
// names one.
func (c *Client) folder() string { return cmp.Or(c.server.Folder, tools.ProjectFolder(c.ctx)) }

// Threads returns the threads of the client.
func (c *Client) Threads() *thread.Share { return c.threads }

// Context returns the context of the client's turns.
func (c *Client) Context() context.Context { return c.ctx }

// Log returns the server's log.
func (c *Client) Log() *slog.Logger { return c.server.Logger }

// Go calls f in another goroutine, whose end [Client.Close] waits for.
func (c *Client) Go(f func()) { c.running.Go(f) }

// later answers a request in another goroutine with what answer returns, and calls leave at the
// end.
func (c *Client) later(r *jsonrpc.Request, answer func() (any, error), leave func()) {
	reply := r.Responder()
	c.running.Go(func() {
		defer leave()
		result, err := recovered(c.Log(), r.Method, answer)
		if err != nil {
			result = nil
		}
		if sent := reply.Reply(result, err); sent != nil {
			c.Log().Debug(r.Method, "error", sent)
		}
	})
}

// recovered calls f and converts a panic to an error. The peer does that only on its own
// goroutines.
func recovered[R any](log *slog.Logger, in string, f func() (R, error)) (result R, err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic", "in", in, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error: the handler panicked")
		}
	}()
	return f()
}
