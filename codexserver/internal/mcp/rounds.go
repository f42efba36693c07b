package mcp

import (
	"context"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
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
	call    *mcptool.Call
	tool    string
	digest  digest
	ctx     context.Context // of the turn
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when there is a result
	result  *mcptypes.CallToolResult

	mu sync.Mutex
	attachment
	questionnaire
	job      *mcptool.Job // the turn; nil before it is queued, and for tools without one
	changed  chan struct{}
	adrift   bool // the turn continues without a request that waits for it
	taskable bool // the call may become a task
	task     *task
}

// attachment is how a call reaches its client.
type attachment struct {
	client elicit.Client // of the newest request
	outlet *outlet       // of the request that waits for the call; nil between two
	sent   float64       // progress so far; some clients use one token for all requests
}

// questionnaire has the questions of a call.
type questionnaire struct {
	questions []*question // the open ones, in order of arrival
	racing    []*question // those that were answered less than the time race ago
	keys      int         // how many questions there were
	rounds    int         // how many results had questions
}

// digest is a hash of a tool's name and arguments. It does not depend on the order of
// members.
type digest [sha256.Size]byte

func (s *ModernSession) callTool(q *request) (any, error) {
	p, err := newParams(q.rpc.Params)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Name == nil:
		return nil, invalid("/name", "missing")
	case !s.server.Tools.Has(*p.Name):
		return nil, invalid("/name", "%s", s.server.Tools.Unknown(*p.Name))
	case p.Arguments == nil:
		p.Arguments = jsontext.Value(`{}`)
	case p.Arguments.Kind() != '{':
		return nil, invalid("/arguments", "want an object")
	}
	d, err := p.digest()
	if err != nil {
		return nil, err
	}
	if p.RequestState == nil && len(p.Answers) > 0 {
		return nil, invalid("/requestState", "required with inputResponses") // otherwise the turn would run again
	}
	if p.RequestState == nil {
		return s.long(q, func(q *request) (any, error) {
			c, err := s.newCall(q, p, d)
			if err != nil {
				return nil, err
			}
			return c.serve(q)
		})
	}
	return s.retry(q, p, d)
}

// retry takes the answers of a retry, on the read loop if the connection has several
// requests, and then serves its call.
func (s *ModernSession) retry(q *request, p *params, d digest) (any, error) {
	if err := s.enter(); err != nil { // the state remains valid
		return nil, err
	}
	st, refusal, err := s.resume(*p.RequestState, d, func(st *state) {
		st.call.attach(q) // before the turn continues
		st.call.take(st.keys, p.Answers)
	})
	if st == nil || err != nil {
		defer s.open.leave()
		if st != nil {
			st.call.contest(st.keys, p.Answers)
		}
		return refusal, err
	}
	c := st.call
	if s.shared { // this request has the connection for itself
		defer s.open.leave()
		return c.serve(q)
	}
	s.later(q.rpc, func() (any, error) { return c.serve(q) }, nil, s.open.leave)
	return nil, nil
}

// newCall starts a call. It runs until it has its result or the session ends.
func (s *ModernSession) newCall(q *request, p *params, d digest) (*call, error) {
	c := &call{session: s, tool: *p.Name, digest: d, attachment: attachment{client: q.client}, done: make(chan struct{}), changed: make(chan struct{})}
	c.taskable = s.mayBeTask(q, c.tool)
	leave, err := c.enter(c.taskable)
	if err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.outlet = c.newOutlet(q, "starting")
	tc := s.Client.call(q.ctx, q.rpc.ID, callWatcher{call: c}) // codex-wait reports a turn in the background
	tc.Attendance.Leaves, tc.Background.Leaves = true, true
	tc.Folder = func(context.Context) string { return s.folder() }
	tc.Shared, tc.MaxText, tc.Begun = s.shared, maxText, c.begin
	own, background := board.Place(deaf{s}), board.Place(deaf{s})
	if q.form {
		own, background = client{c}, hold{s}
		tc.Attendance.Elicit, tc.Place, tc.Hold = c.elicit, own, c.hold
	}
	s.places(tc, own, background, q.form, q.unasked)
	c.call = tc
	arguments := stdjson.RawMessage(p.Arguments.Clone())
	if c.taskable {
		tc.Attendance.Patience = patience
	}
	s.running.Go(func() {
		defer close(c.done)
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
		if err := s.server.Tasks.enter(s.principal); err != nil {
			s.calls.leave()
			return nil, err
		}
	}
	return func() {
		s.calls.leave()
		if task {
			s.server.Tasks.leave(s.principal)
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

// change wakes the goroutines that wait for the call. The caller holds c.mu.
func (c *call) change() {
	close(c.changed)
	c.changed = make(chan struct{})
	if c.task != nil {
		c.task.notify()
	}
}

// settle is how long a question waits for others, so that they are sent together.
const settle = 20 * time.Millisecond

// serve answers a request of the call with the result of the call, with questions, or with
// a task. If the request is cancelled it interrupts the turn.
func (c *call) serve(q *request) (any, error) {
	c.attach(q)
	defer c.detach()
	// A client that cancels does not return, even if the answer would have been a question.
	context.AfterFunc(q.ctx, func() {
		if cause := context.Cause(q.ctx); errors.Is(cause, jsonrpc.ErrCancelled) {
			c.cancel(cause)
		}
	})
	var settled <-chan time.Time
	grace := c.session.grace(q)
	late := false // the grace period is over
	for {
		c.mu.Lock()
		open, changed, taskable := len(c.questions), c.changed, c.taskable && q.tasks
		c.mu.Unlock()
		if taskable && (late || open > 0) {
			if result := c.becomeTask(); result != nil {
				return result, nil
			}
		}
		if open > 0 && !q.form {
			c.refuse()
			continue
		}
		switch {
		case open == 0:
			settled = nil
		case settled == nil:
			settled = time.After(settle)
		}
		select {
		case <-c.done:
			c.call.Answered()
			return c.complete(c.result), nil
		case <-settled:
			if result, err := c.round(); result != nil || err != nil {
				return result, err
			}
			settled = nil
		case <-changed:
		case <-grace:
			late = true
		case <-q.ctx.Done():
			c.cancel(context.Cause(q.ctx))
			<-c.done
			return c.complete(c.result), nil // sent unless the client cancelled
		}
	}
}

// grace returns a channel that fires when a request that supports tasks is answered with
// one. It is nil for other requests.
func (s *ModernSession) grace(q *request) <-chan time.Time {
	if !q.tasks || !s.server.Tasks.serves() {
		return nil
	}
	return time.After(s.server.Tasks.options.Grace)
}

// attach makes q the request that waits for the call.
func (c *call) attach(q *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = q.client
	if c.outlet == nil {
		c.outlet = c.newOutlet(q, "thinking")
		c.change()
	}
}

// detach ends the notifications for the request.
func (c *call) detach() {
	c.mu.Lock()
	o := c.outlet
	c.outlet = nil
	c.change()
	c.mu.Unlock()
	sent := o.close()
	if o.progress == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = sent
}

// maxRounds is how many results of one call may have questions. With a few more, clients
// fail the call without a report.
const maxRounds = 8

// round returns the open questions as a result, or nil if there are none. After too many
// rounds the turn continues in the background.
func (c *call) round() (any, error) {
	c.mu.Lock()
	requests, keys := modern.InputRequests{}, []string{}
	for _, q := range c.questions {
		requests[q.key] = q.request
		keys = append(keys, q.key)
	}
	if len(keys) > 0 {
		c.rounds++
	}
	rounds, job := c.rounds, c.job
	c.mu.Unlock()
	switch {
	case len(keys) == 0:
		return nil, nil
	case rounds <= maxRounds:
		state, err := c.session.park(c, keys)
		if err != nil {
			return nil, fmt.Errorf("seal the state of the call: %w", err)
		}
		return &modern.InputRequiredResult{Meta: c.session.resultMeta(), InputRequests: requests, RequestState: &state}, nil
	case job == nil || !c.session.server.Tools.Has("codex-wait"):
		c.cancel(errRounds)
		<-c.done
		return c.complete(c.result), nil
	}
	c.drift()
	if !job.Detach() {
		<-c.done
		return c.complete(c.result), nil
	}
	return c.complete(job.Interim("This call has asked as often as clients take it. Call codex-wait with this threadId: it asks, and has the result.")), nil
}

var (
	errRounds    = errors.New("the call has asked too often")
	errAbandoned = errors.New("no answer came back in time; codex-reply continues the conversation")
)

// drift makes the turn continue without the client.
func (c *call) drift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.adrift = true
}

// abandon interrupts the turn if no client waits for it. It is called when a question has
// timed out.
func (c *call) abandon() {
	c.mu.Lock()
	abandoned := c.outlet == nil && !c.adrift && c.job != nil
	c.mu.Unlock()
	if abandoned {
		c.cancel(errAbandoned)
	}
}

// hold waits while the client has open questions, and reports whether there were any. A
// tool whose time is over uses it to wait for the answers before it returns.
func (c *call) hold(ctx context.Context) (waited bool) {
	for {
		c.mu.Lock()
		out, changed := len(c.questions) > 0, c.changed
		c.mu.Unlock()
		if !out {
			return waited
		}
		waited = true
		select {
		case <-changed:
		case <-ctx.Done():
			return waited
		}
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
func (w callWatcher) Event(e thread.Event) {
	switch e.Msg.(type) {
	case protocol.ExecCommandBegin, protocol.ExecCommandEnd, protocol.PatchApplyEnd:
		w.mu.Lock()
		if w.task != nil {
			w.task.act()
		}
		w.mu.Unlock()
	}
	w.current().Event(e)
}

// Decided implements [thread.Observer].
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
