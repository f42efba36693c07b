package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// spare is how many requests that do not take long are handled at a time.
	spare = 1024
	// drain is how long requests may continue after a client with a handshake has disconnected.
	// It is enough for short requests, but not for a turn.
	drain = 50 * time.Millisecond
)

// Connection is one connection to a client of one era or both, from its first message to its last.
type Connection struct {
	session *Session
	home    *Session // where turns of servers that were killed continue
	peer    *jsonrpc.Peer
	asks    bool   // the client may approve
	stop    func() // ends the handling of requests

	hello atomic.Pointer[hello] // one without params before initialize
	level atomic.Pointer[mcptypes.LoggingLevel]

	mu           sync.Mutex
	began, ended bool        // a session of the client, and its input
	drained      *time.Timer // nil until both
}

// hello is what the client says of itself. It does not change.
type hello struct {
	params *mcptypes.InitializeRequestParams // nil before initialize
	client elicit.Client                     // the zero value before initialize
	asker  *elicit.Asker
}

// Connect returns a connection of the session's client. Turns of servers that were killed continue in the
// session home, after the first call of a tool. The connection calls stop when its calls should end, because
// the client has disconnected or does not read. If asks is false, the client may not approve, and is not
// asked, even if it supports questions.
func (s *Session) Connect(home *Session, asks bool, stop func()) *Connection {
	c := &Connection{session: s, home: home, asks: asks, stop: stop}
	c.level.Store(new(mcptypes.LoggingLevelWarning))
	c.hello.Store(&hello{asker: elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &s.server.Approvals)})
	return c
}

// Session returns the session of the connection's client.
func (c *Connection) Session() *Session { return c.session }

// Mux returns the handler of the methods of MCP with a handshake, to which others can be added. It
// answers unknown methods with -32601.
func (c *Connection) Mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(m, c.initialize)
	mcptypes.Ping.Handle(m, c.ping)
	mcptypes.ToolsList.Handle(m, c.listTools)
	mcptypes.LoggingSetLevel.Handle(m, c.setLevel)
	m.Handle(mcptypes.ToolsCall.Name(), jsonrpc.HandlerFunc(c.callTool))
	return m
}

// Handler returns the handler of both eras. A request with the _meta of 2026-07-28 goes to the session, any
// other to before. If that is nil, there are only requests of 2026-07-28: others are refused, because the version is
// missing, and notifications, which their clients do not send, are ignored.
func (c *Connection) Handler(before jsonrpc.Handler) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var meta jsontext.Value
		if !r.IsNotification() {
			meta = era.Meta(r.Params)
		}
		switch {
		case before != nil && meta == nil:
			return before.ServeRPC(ctx, r)
		case before != nil:
			c.note(&c.began)
		case r.IsNotification():
			return nil, nil
		case meta == nil:
			meta = jsontext.Value(`{}`)
		}
		return c.session.serve(ctx, r, meta, c.asks)
	})
}

// Peer sets the peer of the connection and returns it. Its handler is that of [Connection.Handler], or only of
// [Connection.Mux]. The methods with which clients poll, those whose order matters, and those in inline are handled on
// its read loop. They return at once. A retry of a call is too, so that of two answers to one question the first
// counts.
func (c *Connection) Peer(t jsonrpc.Transport, h jsonrpc.Handler, hooks jsonrpc.Hooks, inline ...string) *jsonrpc.Peer {
	hooks.InputEnd = func(error) { c.note(&c.ended) }
	named := jsonrpc.Methods(append(inline,
		mcptypes.Ping.Name(), mcptypes.ToolsList.Name(), mcptypes.LoggingSetLevel.Name(), modern.ServerDiscover.Name(),
		modern.TasksGet.Name(), modern.TasksUpdate.Name(), modern.TasksCancel.Name(),
	)...)
	c.peer = jsonrpc.NewPeer(t, h, &jsonrpc.Options{
		Cancellation: jsonrpc.MCPCancel,
		Inline: func(r *jsonrpc.Request) bool {
			retry := r.Method == modern.ToolsCall.Name() && era.HasMember(jsontext.Value(r.Params), "requestState")
			return named(r) || retry && era.Meta(r.Params) != nil
		},
		Batches:        func() bool { return c.hello.Load().client.ProtocolVersion == batches },
		MaxConcurrent:  2*maxLong + spare,
		MaxUnsent:      2 * c.session.server.MaxUnread,
		LenientVersion: true, // as the server of 2025 did
		LenientAnswers: true,
		TextIDs:        true, // some hosts answer so; an approval counts for exactly its question all the same
		DrainTimeout:   -1,   // the session decides
		Logger:         c.session.Log(),
		Hooks:          &hooks,
	})
	return c.peer
}

// note records that the client has begun a session, or that its input has ended. After both it has disconnected,
// and its turns end. Otherwise the input is a file of calls, which are finished.
func (c *Connection) note(what *bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what = true
	if c.began && c.ended && c.drained == nil {
		c.drained = time.AfterFunc(drain, c.stop)
	}
}

// Close closes the session, see [Session.Close]. The peer must have ended.
func (c *Connection) Close() error {
	err := c.session.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained != nil {
		c.drained.Stop()
	}
	return err
}

// speaks reports whether the session's version of MCP is version or a newer one. It returns
// true before initialize.
func (c *Connection) speaks(version string) bool {
	now := c.hello.Load().client.ProtocolVersion
	return now == "" || now >= version
}

// canAsk reports whether the client can be asked.
func (c *Connection) canAsk() bool { return c.hello.Load().client.CanAsk() }

// ClientName returns the client's name, or "" before initialize.
func (c *Connection) ClientName() string { return c.hello.Load().client.Name }

// Outlet returns the observer of a turn that no request waits for. It only sends log messages.
func (c *Connection) Outlet() thread.Observer { return c.outlet(&recipient{}) }

// outlet returns the observer of a turn for a request, or for none.
func (c *Connection) outlet(to *recipient) *outlet {
	to.peer, to.mute, to.level = c.peer, !c.speaks("2025-03-26"), c.level.Load
	o := &outlet{session: c.session, overflow: c.stop}
	o.attach(to, "starting", false)
	return o
}

// Call sends a request to the client.
func (c *Connection) Call(ctx context.Context, method string, params, result any) error {
	return c.peer.Call(ctx, method, params, result)
}

// Notify queues a notification.
func (c *Connection) Notify(method string, params any) { c.session.notify(c.peer, method, params, nil) }

// Listener returns a receiver of the events of a conversation, which sends them as those of September 2025. While too many
// bytes wait for the client, it leaves deltas out, and then sends an event with their number. The session ends if still more
// wait.
func (c *Connection) Listener(conversation string) func(protocol.Event) {
	var gap gap
	return func(e protocol.Event) {
		gap.send(c.peer, c.session.server.MaxUnread, e, func(e protocol.Event) {
			b, _ := jsontext.AppendQuote([]byte(`{"conversationId":`), conversation) // the error reports invalid UTF-8
			c.session.sendEvent(c.peer, "codex/event/"+e.Msg.EventType(), append(b, ','), e, c.stop)
		})
	}
}
