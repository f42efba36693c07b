package legacy

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// unread is how many bytes may wait for a client that reads more slowly than
// events come. Beyond it deltas are left out, of turns that cannot wait.
type unread int

// ahead is how far a turn may be ahead of the client that attends it. It then
// waits for the client to read.
func (n unread) ahead() int { return int(n) / 8 }

// end is where the session ends: the client reads nothing, and what is no delta is
// never left out.
func (n unread) end() int { return 2 * int(n) }

// Egress bounds what waits for the client of a session.
func (s *Server) Egress() jsonrpc.EgressOptions {
	return jsonrpc.EgressOptions{HardLimit: unread(s.MaxUnread).end()}
}

// pace lets turns wait for the client. They go on one by one, so that what many
// turns add at once stays below the bound too. The zero pace is ready.
type pace struct {
	once sync.Once
	next chan struct{} // holds one token while a turn waits for the client
}

// wait returns when the client has read enough, or ctx ends.
func (p *pace) wait(ctx context.Context, peer *jsonrpc.Peer, most unread) {
	if peer.Stats().EgressBytes < most.ahead() {
		return
	}
	p.once.Do(func() { p.next = make(chan struct{}, 1) })
	select {
	case p.next <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-p.next }()
	for peer.Stats().EgressBytes >= most.ahead() {
		if peer.Flush(ctx) != nil {
			return
		}
	}
}

// isDelta reports whether an event is a piece of something that another event
// has as a whole.
func isDelta(m protocol.EventMsg) bool { return strings.HasSuffix(m.EventType(), "_delta") }

// gap counts the deltas that one receiver of events misses. It belongs to whoever
// sends the events.
type gap struct{ missed int }

// send sends an event, unless it is a delta and the client is too far behind. The
// event after a gap is preceded by one that says how many were left out.
func (g *gap) send(ss *Session, e protocol.Event, send func(protocol.Event)) {
	if isDelta(e.Msg) && ss.peer.Stats().EgressBytes >= ss.server.MaxUnread {
		g.missed++
		return
	}
	if g.missed > 0 {
		words := fmt.Sprintf("%d deltas were left out: the client did not read.", g.missed)
		g.missed = 0
		send(protocol.Event{ID: e.ID, Msg: protocol.BackgroundEvent{Message: words}})
	}
	send(e)
}
