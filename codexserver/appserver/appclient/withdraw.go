package appclient

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// requests are those of the app-server that are being handled. The app-server withdraws one that
// another program has answered or whose turn has ended, and then ignores the answer.
type requests struct {
	open  map[jsonrpc.ID]context.CancelFunc
	early map[jsonrpc.ID]bool // withdrawn while none with that id was open
}

// maxEarly bounds the ids that are remembered: the app-server also names each request that was
// answered here. A withdrawn request that is forgotten is asked about in vain.
const maxEarly = 1000

// add records a request with what ends it. It ends one that was withdrawn before.
func (q *requests) add(id jsonrpc.ID, stop context.CancelFunc) {
	if q.early[id] {
		delete(q.early, id)
		stop()
	}
	q.open[id] = stop
}

// withdraw ends a request.
func (q *requests) withdraw(id jsonrpc.ID) {
	if stop := q.open[id]; stop != nil {
		stop()
		return
	}
	if len(q.early) >= maxEarly {
		clear(q.early)
	}
	q.early[id] = true
}

// handling returns a context that ends when the app-server withdraws the request, and when done is
// called.
func (c *Client) handling(ctx context.Context, id jsonrpc.ID) (_ context.Context, done func()) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.add(id, stop)
	return ctx, func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.requests.open, id)
	}
}

// withdrawn ends the request with an id.
func (c *Client) withdrawn(raw json.RawMessage) {
	id, err := mcptypes.ParseRequestID(raw)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.withdraw(id)
}
