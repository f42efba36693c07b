package mcp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// LegacySession is one connection to a client that begins with a handshake, from its first
// message to its last.
type LegacySession struct {
	client  *Client
	peer    *jsonrpc.Peer
	stop    func() // ends the handling of requests
	unasked bool   // the client may not approve
	long    limit

	hello atomic.Pointer[hello] // one without params before initialize

	mu           sync.Mutex
	began, ended bool        // a session of the client, and its input
	drained      *time.Timer // nil until both
	level        mcptypes.LoggingLevel
	over         []over // questions that ended without an answer
}

// hello is what the client says of itself. It does not change.
type hello struct {
	params  *mcptypes.InitializeRequestParams // nil before initialize
	version string                            // of MCP, "" before initialize
	able    bool                              // the client can be asked
	asker   *elicit.Asker
}

// Client returns the client of the session.
func (ss *LegacySession) Client() *Client { return ss.client }

// Handler returns the handler of the session's methods of MCP, to which others can be added. It
// answers unknown methods with -32601.
func (ss *LegacySession) Handler() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(m, ss.initialize)
	mcptypes.Ping.Handle(m, ss.ping)
	mcptypes.ToolsList.Handle(m, ss.listTools)
	mcptypes.LoggingSetLevel.Handle(m, ss.setLevel)
	m.Handle(mcptypes.ToolsCall.Name(), jsonrpc.HandlerFunc(ss.callTool))
	return m
}

// LegacyInline returns the methods of [LegacySession.Handler] to handle on the read loop: those
// whose order matters, and those that must be answered at any time. They return at once.
func LegacyInline() []string {
	return []string{mcptypes.Ping.Name(), mcptypes.ToolsList.Name(), mcptypes.LoggingSetLevel.Name()}
}

// NewLegacySession returns a session of a client. It must not serve before
// [LegacySession.Connect]. It calls stop when its calls should end, because the client has
// disconnected or does not read. If asks is false, the client may not approve, and is not
// asked, even if it supports questions.
func NewLegacySession(c *Client, asks bool, stop func()) *LegacySession {
	ss := &LegacySession{client: c, unasked: !asks, level: mcptypes.LoggingLevelWarning, stop: stop}
	ss.hello.Store(&hello{asker: elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &c.server.Approvals)})
	return ss
}

// Connect sets the peer of the client. The peer's handler is [LegacySession.Handler].
func (ss *LegacySession) Connect(p *jsonrpc.Peer) { ss.peer = p }

// speaks reports whether the session's version of MCP is version or a newer one. It returns
// true before initialize.
func (ss *LegacySession) speaks(version string) bool {
	now := ss.hello.Load().version
	return now == "" || now >= version
}

// canAsk reports whether the client can be asked.
func (ss *LegacySession) canAsk() bool { return ss.hello.Load().able }

// Host returns the client's name, or "" before initialize.
func (ss *LegacySession) Host() string { return ss.hello.Load().info().Name }

// info returns the client's name and version, or none before initialize.
func (h *hello) info() (i mcptypes.Implementation) {
	if h.params != nil {
		i = h.params.ClientInfo
	}
	return i
}

// Outlet returns the observer of a turn that no request waits for. It only sends log messages.
func (ss *LegacySession) Outlet() thread.Observer { return ss.outlet(&recipient{}) }

// outlet returns the observer of a turn for a request, or for none.
func (ss *LegacySession) outlet(to *recipient) *outlet {
	to.peer, to.paced, to.mute = ss.peer, true, !ss.speaks("2025-03-26")
	to.level = func() *mcptypes.LoggingLevel {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		return new(ss.level)
	}
	o := &outlet{client: ss.client, endsOnce: true, overflow: ss.stop}
	o.attach(to, "starting", false)
	return o
}

// Peer returns the peer of the client.
func (ss *LegacySession) Peer() *jsonrpc.Peer { return ss.peer }

// Notify queues a notification.
func (ss *LegacySession) Notify(method string, params any) { ss.client.notify(ss.peer, method, params) }

// SendEvent sends an event, unless err says that it could not be written. The session ends if
// too many bytes wait for the client.
func (ss *LegacySession) SendEvent(method string, params any, err error) {
	ss.client.sendEvent(ss.peer, method, params, err, ss.stop)
}

// Listener returns a receiver of events that sends them. While too many bytes wait for the
// client, it leaves deltas out, and then sends an event with their number.
func (ss *LegacySession) Listener(send func(protocol.Event)) func(protocol.Event) {
	var gap gap
	return func(e protocol.Event) { gap.send(ss.peer, ss.client.server.MaxUnread, e, send) }
}
