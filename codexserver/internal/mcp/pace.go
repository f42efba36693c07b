package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Unread is how many bytes may wait for a client that reads slowly. Beyond it, turns that
// cannot wait lose their deltas.
type Unread int

// Ahead is the number of unread bytes at which a turn waits for its client.
func (n Unread) Ahead() int { return int(n) / 8 }

// End is the number of unread bytes at which the session ends. It is needed because only
// deltas may be left out.
func (n Unread) End() int { return 2 * int(n) }

// pace lets turns wait for the client. They continue one by one, so that many turns at
// once stay within the limit too. The zero pace is ready.
type pace struct {
	once sync.Once
	next chan struct{} // holds one token while a turn waits for the client
}

// wait waits until the client has read enough or ctx ends.
func (p *pace) wait(ctx context.Context, peer *jsonrpc.Peer, most Unread) {
	if peer.Stats().EgressBytes < most.Ahead() {
		return
	}
	p.once.Do(func() { p.next = make(chan struct{}, 1) })
	select {
	case p.next <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-p.next }()
	for peer.Stats().EgressBytes >= most.Ahead() {
		if peer.Flush(ctx) != nil {
			return
		}
	}
}

// isDelta reports whether an event is a piece of a text that another event holds as a
// whole.
func isDelta(m protocol.EventMsg) bool { return strings.HasSuffix(m.EventType(), "_delta") }

// gap counts the deltas that one receiver of events misses. Only the goroutine that sends
// the events may use it. The zero gap is ready.
type gap struct{ missed int }

// send sends an event, unless it is a delta and the client is too far behind. After a gap
// it first sends an event with the number of deltas left out.
func (g *gap) send(peer *jsonrpc.Peer, most Unread, e protocol.Event, send func(protocol.Event)) {
	if isDelta(e.Msg) && peer.Stats().EgressBytes >= int(most) {
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
