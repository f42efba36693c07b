package mcp

import (
	"sync"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// LegacySession is one connection to a client that begins with a handshake, from its first
// message to its last.
type LegacySession struct {
	*Client
	peer    *jsonrpc.Peer
	end     inputEnd
	stop    func() // ends the handling of requests
	unasked bool   // the client may not approve

	long              limit
	settings, account lane

	mu      sync.Mutex
	client  *mcptypes.InitializeRequestParams // nil until initialize
	version string                            // of MCP, "" until initialize
	level   mcptypes.LoggingLevel
	able    bool          // the client supports elicitation
	asker   *elicit.Asker // from initialize on; before, the client cannot be asked
}

// NewLegacySession returns a session of a client. It must not serve before
// [LegacySession.Connect]. It calls stop when its calls should end, because the client has
// disconnected or does not read. If asks is false, the client may not approve, and is not
// asked, even if it supports questions.
func NewLegacySession(c *Client, asks bool, stop func()) *LegacySession {
	ss := &LegacySession{Client: c, unasked: !asks, level: mcptypes.LoggingLevelWarning, stop: stop}
	if !c.server.Finish {
		ss.end.stop = stop
	}
	ss.asker = elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, &c.server.Approvals)
	return ss
}

// Connect sets the peer of the client. The peer's handler is [LegacySession.Handler].
func (ss *LegacySession) Connect(p *jsonrpc.Peer) { ss.peer = p }

// InputEnded records the end of the client's input. It is a hook of the peer.
func (ss *LegacySession) InputEnded(error) { ss.end.reach() }

// Close ends the wait for the end of the session. The client must be closed.
func (ss *LegacySession) Close() { ss.end.close() }

// Begin records that the client has begun a session without initialize.
func (ss *LegacySession) Begin() { ss.end.begin() }

// speaks reports whether the session's version of MCP is version or a newer one. It returns
// true before initialize.
func (ss *LegacySession) speaks(version string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.version == "" || ss.version >= version
}

// canAsk reports whether the client supports elicitation.
func (ss *LegacySession) canAsk() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.able
}

// host returns the client's name, or "" before initialize.
func (ss *LegacySession) host() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.client == nil {
		return ""
	}
	return ss.client.ClientInfo.Name
}

// notify queues a notification.
func (ss *LegacySession) notify(method string, params any) { ss.Client.notify(ss.peer, method, params) }

// outlet returns the outlet of a turn that no request waits for. It only sends log messages:
// the listeners of the thread receive the events.
func (ss *LegacySession) outlet() *outlet {
	return &outlet{client: ss.Client, peer: ss.peer, paced: true, endsOnce: true, overflow: ss.stop, level: func() *mcptypes.LoggingLevel {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		return new(ss.level)
	}}
}
