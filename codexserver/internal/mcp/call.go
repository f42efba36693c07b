package mcp

import (
	"context"
	stdjson "encoding/json"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// call is one call of a tool, from its first request to its result. It reports the turn to
// the request that waits for it, and asks the turn's questions. Between two requests no
// client waits for it.
type call struct {
	session  *ModernSession
	call     *mcptool.Call
	tool     string
	digest   digest
	ctx      context.Context // of the turn
	cancel   context.CancelCauseFunc
	deadline deadline
	done     <-chan struct{} // closed when there is a result
	result   *mcptypes.CallToolResult

	mu sync.Mutex
	attachment
	questionnaire
	job      *mcptool.Job // the turn; nil before it is queued, and for tools without one
	changed  chan struct{}
	taskable bool // the call may become a task
	form     bool // the client of the first request shows forms
	task     *task
}

// attachment is how a call reaches its client.
type attachment struct {
	client elicit.Client // of the newest request
	outlet *outlet       // of the request that waits for the call; nil between two
	sent   float64       // progress so far; some clients use one token for all requests
	adrift bool          // the turn continues without a request that waits for it
}

// newCall starts a call. It runs until it has its result or the session ends.
func (s *ModernSession) newCall(q *request, p *params) (*call, error) {
	done := make(chan struct{})
	c := &call{session: s, tool: p.tool, digest: p.digest, attachment: attachment{client: q.client}, done: done, changed: make(chan struct{})}
	c.slots = s.server.slots()
	c.taskable = s.mayBeTask(q, c.tool)
	leave, err := c.enter(c.taskable)
	if err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.deadline = newDeadline()
	c.outlet = c.newOutlet(q, "starting")
	c.form = q.form
	tc := s.Client.call(q.rpc.ID, c.audience(q.ctx, q.unasked))
	tc.Took = s.took // callTool has begun it
	tc.Folder = func(context.Context) string { return s.folder() }
	tc.Shared, tc.MaxText, tc.Begun, tc.Host = s.shared, maxText, c.begin, q.client.Name
	tc.Durable, tc.Kept = c.taskable, func(j *mcptool.Job) { s.keepTurn(j, c.tool, keepsake{Form: q.form, Host: q.client.Name}) }
	tc.Late = c.deadline.of(c.mayTake(q))
	c.call = tc
	arguments := stdjson.RawMessage(p.arguments)
	stay := context.AfterFunc(s.present, c.orphan)
	s.running.Go(func() {
		defer close(done)
		defer stay()
		defer leave()
		defer c.cancel(nil)
		var err error
		c.result, err = recovered(s.log, "a tool", func() (*mcptypes.CallToolResult, error) {
			return s.server.Tools.Call(c.ctx, tc, c.tool, arguments), nil
		})
		if err != nil {
			c.result = mcptool.Broken()
		}
	})
	return c, nil
}

// audience returns who is asked about the turns of the call, and who observes them: codex-wait reports
// turns in the background.
func (c *call) audience(ctx context.Context, unasked bool) mcptool.Audience {
	s := c.session
	w := way{turn: s.unable, background: s.unable, unasked: unasked}
	if c.form {
		w.turn, w.caller, w.elicit = c.asks, c.asks, c.elicit
	}
	if c.form || s.waits() {
		w.background = s.hold
		if c.taskable { // another client may poll the task
			w.turn = c.asks
		}
	}
	if c.taskable {
		w.patience = patience
	}
	a := s.Client.audience(ctx, w, callWatcher{call: c})
	a.Turn.Leaves, a.Background.Leaves = true, true
	return a
}

// mayTake returns how long a request of the call may take, 0 for no limit.
func (c *call) mayTake(q *request) time.Duration {
	return c.session.server.Tools.Patience(c.tool, q.client.Name, q.bare)
}

// orphan ends the call of a client that has left, unless it is a task.
func (c *call) orphan() {
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
	if mcptool.Short(c.tool) {
		return func() {}, nil
	}
	if !s.calls.enter(maxCalls) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%d calls are unfinished, and no more may be; nothing was started", maxCalls)
	}
	if task {
		if err := s.server.Tasks.enter(s.principal()); err != nil {
			s.calls.leave()
			return nil, err
		}
	}
	return func() {
		s.calls.leave()
		if task {
			s.server.Tasks.leave(s.principal())
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
func (c *call) begin(j *mcptool.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.job = j
	c.change()
}

// stuck returns the words of a turn whose model is stuck, and "" otherwise.
func (c *call) stuck() string {
	c.mu.Lock()
	j := c.job
	c.mu.Unlock()
	return stuck(j)
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
	*call
}

func (w callWatcher) current() *outlet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outlet
}

// Ready implements [thread.Waiter].
func (w callWatcher) Ready(ctx context.Context, m protocol.EventMsg) { w.current().Ready(ctx, m) }

// Event implements [thread.Observer].
func (w callWatcher) Event(e thread.Event) { w.current().Event(e) }

// Decided implements [thread.Observer]. The job has the decision already.
func (w callWatcher) Decided(r *approval.Request, d approval.Decision) { w.current().Decided(r, d) }

// newOutlet returns the outlet of a request. Its progress continues that of the call, and doing is
// the first activity. The caller must close it before the answer.
func (c *call) newOutlet(q *request, doing string) *outlet {
	peer, s := q.rpc.Peer(), c.session
	o := &outlet{
		client: s.Client, peer: peer, request: q.rpc.ID, events: q.events, paced: q.events,
		level: func() *mcptypes.LoggingLevel { return q.meta.LogLevel },
	}
	if token := q.meta.ProgressToken; token != nil {
		o.progress = &progress{token: token, doing: doing, sent: c.sent, stuck: c.stuck, send: func(p *mcptypes.ProgressNotificationParams) {
			s.notify(peer, mcptypes.NotificationsProgress.Name(), p)
		}}
		o.progress.start(q.ctx)
	}
	return o
}
