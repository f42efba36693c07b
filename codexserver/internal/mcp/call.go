package mcp

import (
	"context"
	stdjson "encoding/json"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// call is one call of a tool, from its first request to its result. It reports the turn to
// the request that waits for it, and asks the turn's questions. Between two requests no
// client waits for it.
type call struct {
	session *ModernSession
	call    *tools.Call
	tool    string
	digest  digest
	ctx     context.Context // of the turn
	cancel  context.CancelCauseFunc
	done    <-chan struct{} // closed when there is a result
	result  *mcptypes.CallToolResult
	inbox   inbox

	mu       sync.Mutex
	attached attachment
	turn     *tools.Turn // nil before it is queued, and for tools without one
	changed  chan struct{}
	taskable bool // the call may become a task
	task     *task
}

// attachment is how a call reaches its client. The call's mutex guards it.
type attachment struct {
	client elicit.Client // of the newest request
	outlet *outlet       // of the request that waits for the call; nil between two
	sent   float64       // progress so far; some clients use one token for all requests
	alone  bool          // the turn continues without a request that waits for it
}

// gone reports whether the client does not come back for the call.
func (a *attachment) gone() bool { return a.outlet == nil && !a.alone }

// newCall starts a call. It runs until it has its result or the session ends.
func (s *ModernSession) newCall(q *request, p *params) (*call, error) {
	c := s.unstarted(p.tool, q.client)
	c.digest, c.taskable = p.digest, s.mayBeTask(q, c.tool)
	leave, err := c.enter(c.taskable)
	if err != nil {
		c.cancel(nil)
		return nil, err
	}
	c.attached.outlet = c.newOutlet(q, "starting")
	c.attached.outlet.quieten(c.taskable)
	tc := c.of(q.ctx, q.rpc.ID)
	s.survive(tc, c.tool, func() bool { return c.inbox.canAsk }, nil)
	tc.Folder = func(context.Context) string { return s.client.folder() }
	if c.mayTake(q) > 0 {
		tc.Deadline = tools.NewDeadline(c.ctx)
	}
	arguments := stdjson.RawMessage(p.arguments)
	stay := context.AfterFunc(s.client.present, c.clientLeft)
	c.run(func() *mcptypes.CallToolResult { return s.client.server.Tools.Call(c.ctx, tc, c.tool, arguments) }, func() {
		leave()
		stay()
	})
	return c, nil
}

// unstarted returns a call of a tool that does not run yet.
func (s *ModernSession) unstarted(tool string, client elicit.Client) *call {
	c := &call{session: s, tool: tool, changed: make(chan struct{})}
	c.attached.client = client
	c.inbox = inbox{
		options: &s.client.server.Approvals, slots: s.client.server.slots(), client: c.who, changed: c.wake, expires: c.expire,
		canAsk: client.CanAsk(),
	}
	c.ctx, c.cancel = context.WithCancelCause(s.client.ctx)
	return c
}

// of returns the call as the tools know it. Ctx is that of its request.
func (c *call) of(ctx context.Context, id jsonrpc.ID) *tools.Call {
	awaited, others := c.attend(ctx)
	c.call = c.session.call(id, c.attached.client.Name, awaited, others)
	c.call.Begun, c.call.Open, c.call.Survival.Durable = c.begin, c.open, c.taskable
	return c.call
}

// call is [Client.call] for a call whose result is not longer than clients of this era show.
func (s *ModernSession) call(id jsonrpc.ID, host string, awaited, others thread.Attend) *tools.Call {
	tc := s.client.call(id, host, awaited, others)
	tc.Shared, tc.MaxText = s.shared, maxText
	return tc
}

// run calls f for the result of the call in another goroutine, and leave after it.
func (c *call) run(f func() *mcptypes.CallToolResult, leave func()) {
	done := make(chan struct{})
	c.done = done
	c.session.client.Go(func() {
		defer close(done)
		defer leave()
		defer c.cancel(nil)
		var err error
		c.result, err = recovered(c.session.client.Log(), "a tool", func() (*mcptypes.CallToolResult, error) { return f(), nil })
		if err != nil {
			c.result = tools.Broken()
		}
	})
}

// mayTake returns how long a request of the call may take, 0 for no limit.
func (c *call) mayTake(q *request) time.Duration {
	return c.session.client.server.Tools.MayTake(c.tool, q.client.Name, q.bare)
}

// clientLeft ends the call of a client that has left, unless it is a task.
func (c *call) clientLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task == nil {
		c.cancel(jsonrpc.ErrClosed)
	}
}

// maxCalls is how many calls of a session that may take long may be unfinished at a time,
// including those that wait for their client.
const maxCalls = 4096

// enter counts the call, and fails if there are too many. The caller must call leave.
func (c *call) enter(task bool) (leave func(), err error) {
	s := c.session
	if tools.IsShort(c.tool) {
		return func() {}, nil
	}
	if !s.calls.enter(maxCalls) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%d calls are unfinished, and no more may be; nothing was started", maxCalls)
	}
	if task {
		if err := s.client.server.Tasks.enter(s.client.principal()); err != nil {
			s.calls.leave()
			return nil, err
		}
	}
	return func() {
		s.calls.leave()
		if task {
			s.client.server.Tasks.leave(s.client.principal())
		}
	}, nil
}

// over reports whether the call has its result.
func (c *call) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// maxText is the size of the longest text of a result in bytes of JSON. Clients do not show
// longer ones to their model.
const maxText = 45_000

// begin records the turn of the call.
func (c *call) begin(t *tools.Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = t
	c.change()
}

// change wakes the goroutines that wait for the call, and tells those who listen to its task. They
// are sent only what differs from what they know. The caller holds c.mu.
func (c *call) change() {
	close(c.changed)
	c.changed = make(chan struct{})
	if c.task != nil {
		c.task.notify()
	}
}

// wake is change for callers that do not hold c.mu.
func (c *call) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change()
}

// open reports whether the client has a question of the call, and returns a channel that is closed when
// that may have changed.
func (c *call) open() (open bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inbox.has(), c.changed
}

// who returns the client of the newest request.
func (c *call) who() elicit.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached.client
}

// take answers the open questions that have keys, all unless keys is nil. The caller learns of answers
// that are too late.
func (c *call) take(keys []string, answers map[string]jsontext.Value) {
	for _, r := range c.inbox.take(keys, answers) {
		c.session.client.turns.AnsweredLate(r, false)
	}
}

// elicit asks a question of another party.
func (c *call) elicit(ctx context.Context, f *elicit.Foreign) (stdjson.RawMessage, error) {
	if c.over() {
		return nil, elicit.ErrUnsupported // the turn continues in the background
	}
	return c.inbox.elicit(ctx, f)
}

// complete returns the result of the call in the types of this era.
func (c *call) complete(r *mcptypes.CallToolResult) *modern.CallToolResult {
	return &modern.CallToolResult{
		Meta: c.session.resultMeta(), Content: content(r), IsError: r.IsError, StructuredContent: r.StructuredContent,
	}
}

// content converts the content of a result. All blocks are texts.
func content(r *mcptypes.CallToolResult) []modern.ContentBlock {
	blocks := make([]modern.ContentBlock, 0, len(r.Content))
	for _, b := range r.Content {
		if t, ok := b.(*mcptypes.TextContent); ok {
			blocks = append(blocks, &modern.TextContent{Text: t.Text, Annotations: t.Annotations})
		}
	}
	return blocks
}

// callWatcher reports the turn to the request that waits for the call.
type callWatcher struct {
	thread.NoQuestions
	call *call
}

func (w callWatcher) outlet() *outlet {
	w.call.mu.Lock()
	defer w.call.mu.Unlock()
	return w.call.attached.outlet
}

// Ready implements [thread.Waiter].
func (w callWatcher) Ready(ctx context.Context, m protocol.EventMsg) { w.outlet().Ready(ctx, m) }

// Event implements [thread.Observer].
func (w callWatcher) Event(e thread.Event) { w.outlet().Event(e) }

// Waits implements [thread.Waited].
func (w callWatcher) Waits(r *approval.Request) { w.outlet().Waits(r) }

// Decided implements [thread.Observer]. The turn has the decision already.
func (w callWatcher) Decided(r *approval.Request, d approval.Decision) { w.outlet().Decided(r, d) }

// newOutlet returns the outlet of a request. Its progress continues that of the call, and doing is
// the first activity. The caller must close it before the answer.
func (c *call) newOutlet(q *request, doing string) *outlet {
	peer, s := q.rpc.Peer(), c.session
	o := &outlet{
		client: s.client, peer: peer, request: q.rpc.ID, events: q.events, paced: q.events,
		level: func() *mcptypes.LoggingLevel { return q.meta.LogLevel },
	}
	if token := q.meta.ProgressToken; token != nil {
		o.start(q.ctx, &progress{token: token, doing: doing, sent: c.attached.sent, send: func(p *mcptypes.ProgressNotificationParams) {
			s.client.notify(peer, mcptypes.NotificationsProgress.Name(), p)
		}})
	}
	return o
}
