package mcp

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// call is one call of a tool, from its first request to its result. Between two requests no
// client waits for it. It is a [tools.Pending].
type call struct {
	session *Session
	call    *tools.Call
	tool    string
	ctx     context.Context // of the turn
	cancel  context.CancelCauseFunc
	pass    context.CancelCauseFunc // ends what the call waits for, before its turn
	leave   func()                  // at the end, what counts the call
	once    sync.Once               // for finish
	done    chan struct{}           // closed when there is a result
	result  *mcptypes.CallToolResult
	outlet  outlet // to the request that waits, if one does
	digest  digest // of the tool and the arguments, which each request must have again
	state   string // names the call in the next request of its client; "" before the first

	mu       *sync.Mutex // of the session's calls; the outlet has it, too
	changed  chan struct{}
	client   elicit.Client // of the newest request
	late     bool          // the request waits longer than for a result, so the call becomes a task with its turn
	alone    bool          // the turn continues without a request that waits for it, as that of a task does
	inbox    inbox
	turn     *turn.Turn // nil before it is queued, and for tools without one
	taskable bool       // the call may become a task
}

// newCall starts a call. It runs until it has its result or the session ends.
func (s *Session) newCall(q *request, p *params) (*call, error) {
	taskable := q.tasks && s.server.Tasks != nil && tools.IsTurn(p.tool)
	leave, err := s.enterCall(p.tool, taskable)
	if err != nil {
		return nil, err
	}
	c := s.unstarted(q.rpc.ID, p.tool, q.client, taskable)
	c.digest = p.digest
	c.attach(q, "starting", c.taskable)
	tc := c.call
	s.survive(tc, c.tool, func() bool { return c.inbox.canAsk }, nil)
	if c.mayTake(q) > 0 {
		tc.Until, c.pass = context.WithCancelCause(c.ctx)
	}
	arguments := stdjson.RawMessage(p.arguments)
	stay := context.AfterFunc(s.present, c.clientLeft)
	c.leave = func() { leave(); stay() }
	s.Go(func() {
		r := tools.Broken()
		_ = stack.Guard(s.Log(), "a tool", func() error { r = s.server.Tools.Begin(c.ctx, tc, c.tool, arguments); return nil })
		if r != nil { // otherwise its turn has it
			c.finish(r)
		}
	})
	return c, nil
}

// unstarted returns a call of a tool by a request, which does not run yet.
func (s *Session) unstarted(request jsonrpc.ID, tool string, client elicit.Client, taskable bool) *call {
	c := &call{
		session: s, mu: s.calls.mu, tool: tool, client: client, taskable: taskable,
		inbox:  inbox{slots: slots.New(cmp.Or(s.server.Approvals.MaxPending, elicit.DefaultMaxPending)), canAsk: client.CanAsk(), open: map[string]*question{}},
		outlet: outlet{session: s}, changed: make(chan struct{}), done: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.pass = func(error) {} // unless the call has a limit
	awaited, others := c.attend()
	c.call = s.call(request, client.Name, awaited, others)
	c.call.Begun, c.call.Ended, c.call.Inbox, c.call.Durable = c.begin, c.finish, c, taskable
	return c
}

// finish ends the call with its result, once.
func (c *call) finish(r *mcptypes.CallToolResult) {
	c.once.Do(func() {
		c.result = r
		c.cancel(nil)
		c.leave()
		c.session.calls.end(c)
	})
}

// passes ends the call, which takes as long as it may. Its turn continues in the background.
func (c *call) passes() {
	c.pass(tools.ErrLimit)
	c.mu.Lock()
	begun := c.turn != nil
	c.mu.Unlock()
	if !begun {
		return // what the call waits for ends
	}
	if r := c.call.Leave(); r != nil {
		c.finish(r)
	}
}

// mayTake returns how long a request of the call may take, 0 for no limit.
func (c *call) mayTake(q *request) time.Duration {
	return c.session.server.Tools.MayTake(c.tool, q.client.Name, q.bare)
}

// clientLeft ends the call of a client that has left, unless its turn continues without it.
func (c *call) clientLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.alone {
		c.cancel(jsonrpc.ErrClosed)
	}
}

// enterCall is [slots.Limit.Enter] for a call of a tool, which is also counted as a task if it may become one.
func (s *Session) enterCall(tool string, task bool) (leave func(), err error) {
	if tools.IsShort(tool) {
		return func() {}, nil
	}
	ended, err := s.calls.limit.Enter("")
	if err != nil || !task {
		return ended, err
	}
	left, err := s.server.Tasks.limit.Enter(s.principal())
	if err != nil {
		ended()
		return nil, err
	}
	return func() { ended(); left() }, nil
}

// Done implements [tools.Pending].
func (c *call) Done() <-chan struct{} { return c.done }

// Changed implements [tools.Pending].
func (c *call) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Asks implements [tools.Pending]. A turn that can become a task at last counts as a question.
func (c *call) Asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inbox.open) > 0 || c.taskable && c.late && c.turn != nil
}

// over reports whether the call has its result.
func (c *call) over() bool { return tools.Over(c.done) }

// update changes fields of the call, and wakes the goroutines that wait for it.
func (c *call) update(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// begin records the turn of the call.
func (c *call) begin(t *turn.Turn) { c.update(func() { c.turn = t }) }

// attach makes q the request that waits for the call, see [outlet.attach].
func (c *call) attach(q *request, doing string, quiet bool) {
	c.outlet.attach(&recipient{
		peer: q.rpc.Peer(), request: q.rpc.ID, events: q.events, token: q.meta.ProgressToken,
		level: func() *mcptypes.LoggingLevel { return q.meta.LogLevel },
	}, doing, quiet)
	c.update(func() { c.client, c.late = q.client, false })
}

// complete returns a result in the types of this era. All its blocks are texts.
func (s *Server) complete(r *mcptypes.CallToolResult) *modern.CallToolResult {
	blocks := make([]modern.ContentBlock, 0, len(r.Content))
	for _, b := range r.Content {
		if t, ok := b.(*mcptypes.TextContent); ok {
			blocks = append(blocks, &modern.TextContent{Text: t.Text, Annotations: t.Annotations})
		}
	}
	return &modern.CallToolResult{Meta: s.meta(), Content: blocks, IsError: r.IsError, StructuredContent: r.StructuredContent}
}
