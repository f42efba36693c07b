package mcp

import (
	"cmp"
	"context"
	stdjson "encoding/json"
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
	session  *Session
	toolCall *tools.Call
	tool     string
	ctx      context.Context // of the turn
	cancel   context.CancelCauseFunc
	pass     context.CancelCauseFunc // ends what the call waits for, before its turn
	done     chan struct{}           // closed when there is a result
	outlet   outlet                  // to the request that waits, if one does
	digest   digest                  // of the tool and the arguments, which each request must have again

	// The mutex of the session's calls guards these.

	result   *mcptypes.CallToolResult
	state    string // names the call in the next request of its client; "" before the first
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
	s.survive(c.toolCall, c.tool, func() bool { return c.inbox.canAsk }, nil)
	if c.mayTake(q) > 0 {
		c.toolCall.Until, c.pass = context.WithCancelCause(c.ctx)
	}
	stay := context.AfterFunc(s.present, c.clientLeft)
	arguments := stdjson.RawMessage(p.arguments)
	c.run(func() { leave(); stay() }, func() *mcptypes.CallToolResult {
		return s.server.Tools.Call(c.ctx, c.toolCall, c.tool, arguments)
	})
	return c, nil
}

// unstarted returns a call of a tool by a request, which does not run yet.
func (s *Session) unstarted(request jsonrpc.ID, tool string, client elicit.Client, taskable bool) *call {
	most := cmp.Or(s.server.Approvals.MaxPending, elicit.DefaultMaxPending)
	c := &call{
		session: s, tool: tool, client: client, taskable: taskable,
		inbox:  inbox{slots: slots.New(most), canAsk: client.CanAsk(), open: map[string]*question{}},
		outlet: outlet{session: s}, changed: make(chan struct{}), done: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.pass = func(error) {} // unless the call has a limit
	awaited, others := c.attend()
	c.toolCall = s.call(request, client.Name, awaited, others)
	c.toolCall.Begun, c.toolCall.Inbox, c.toolCall.Durable = c.begin, c, taskable
	return c
}

// run ends the call with the result of work, in a goroutine of the session, and leaves what counts the call.
func (c *call) run(leave func(), work func() *mcptypes.CallToolResult) {
	c.session.Go(func() {
		r := tools.Broken()
		_ = stack.Guard(c.session.Log(), "a tool", func() error { r = work(); return nil })
		leave()
		c.finish(r)
	})
}

// finish ends the call with its result, unless it has one.
func (c *call) finish(r *mcptypes.CallToolResult) {
	c.cancel(nil)
	c.session.calls.end(c, r)
}

// passes ends the call, which takes as long as it may. Its turn continues in the background.
func (c *call) passes() {
	c.pass(tools.ErrLimit)
	c.session.calls.mu.Lock()
	begun := c.turn != nil
	c.session.calls.mu.Unlock()
	if !begun {
		return // what the call waits for ends
	}
	if r := c.toolCall.Leave(); r != nil {
		c.finish(r)
	}
}

// mayTake returns how long a request of the call may take, 0 for no limit.
func (c *call) mayTake(q *request) time.Duration {
	return c.session.server.Tools.MayTake(c.tool, q.client.Name, q.bare)
}

// clientLeft ends the call of a client that has left, unless its turn continues without it.
func (c *call) clientLeft() {
	c.session.calls.mu.Lock()
	defer c.session.calls.mu.Unlock()
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
	c.session.calls.mu.Lock()
	defer c.session.calls.mu.Unlock()
	return c.changed
}

// Asks implements [tools.Pending]. A turn that can become a task at last counts as a question.
func (c *call) Asks() bool {
	c.session.calls.mu.Lock()
	defer c.session.calls.mu.Unlock()
	return len(c.inbox.open) > 0 || c.taskable && c.late && c.turn != nil
}

// over reports whether the call has its result.
func (c *call) over() bool { return tools.Over(c.done) }

// update changes fields of the call, and wakes the goroutines that wait for it.
func (c *call) update(f func()) {
	c.session.calls.mu.Lock()
	defer c.session.calls.mu.Unlock()
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
	return &modern.CallToolResult{
		Meta: s.meta(), Content: blocks, IsError: r.IsError, StructuredContent: r.StructuredContent,
	}
}
