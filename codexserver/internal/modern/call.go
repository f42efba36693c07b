package modern

import (
	"context"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// call is one call of a tool from its first request to its result. It watches the turn
// for the request that waits for it, and is the place where the turn's questions are put.
// Between two requests no client waits for it.
type call struct {
	session *Session
	call    *tools.Call
	tool    string
	digest  digest
	ctx     context.Context // of the turn
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when there is a result
	result  *mcptypes.CallToolResult

	mu        sync.Mutex
	client    elicit.Client // as the newest request says
	outlet    *outlet       // of the request that waits for the call; nil between two
	sent      float64       // progress so far: some clients repeat a call under the token of the first request
	job       *tools.Job    // the turn; nil before it is queued, and of tools without one
	questions []*question   // open and unanswered, in the order of their arrival
	keys      int           // questions so far
	rounds    int           // results with questions so far
	changed   chan struct{}
	adrift    bool // the turn continues without a request that waits for it
	taskable  bool // the call may become a task
	task      *task
}

// digest is of a tool's name and arguments, whatever the order of members.
type digest [sha256.Size]byte

func (s *Session) callTool(q *request) (any, error) {
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
		return nil, invalid("/requestState", "required with inputResponses") // the work would be done again
	}
	if p.RequestState == nil {
		c, err := s.newCall(q, p, d)
		if err != nil {
			return nil, err
		}
		return c.serve(q)
	}
	st, refusal, err := s.resume(*p.RequestState, d)
	if st == nil {
		return refusal, err
	}
	st.call.attach(q) // before the turn continues
	st.call.take(st.keys, p.Answers)
	return st.call.serve(q)
}

// newCall begins a call, which runs until it has its result or the session ends.
func (s *Session) newCall(q *request, p *params, d digest) (*call, error) {
	c := &call{session: s, tool: *p.Name, digest: d, client: q.client, done: make(chan struct{}), changed: make(chan struct{})}
	c.taskable = s.mayBeTask(q, c.tool)
	leave, err := c.enter(c.taskable)
	if err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.outlet = s.newOutlet(q, "starting", 0, c.stuck)
	observer := thread.ObserverOf(q.ctx)
	tc := &tools.Call{
		ID:         callID(q.rpc.ID),
		Threads:    s.threads,
		Jobs:       s.jobs,
		Attendance: thread.Attendance{Watcher: watcher{c}, Observer: observer, Awaited: true, Place: deaf{s}, Leaves: true},
		Background: thread.Attendance{Watcher: silence{}, Observer: observer, Place: deaf{s}, Leaves: true},
		Folder:     func(context.Context) string { return s.folder() },
		OpenOnly:   s.principal != "",
		Shared:     s.shared,
		MaxText:    maxText,
		Begun:      c.begin,
	}
	if q.form {
		tc.Attendance.Place, tc.Attendance.Elicit = client{c}, c.elicit
		tc.Background.Place = hold{s}
		tc.Place, tc.Hold = client{c}, c.hold
		if s.principal == s.server.Approver {
			tc.Relay, tc.Taker = s.server.Relay, client{c}
		}
	}
	if q.unasked && s.server.Relay != nil {
		tc.Attendance.Place, tc.Background.Place = s.server.Relay, s.server.Relay
	}
	c.call = tc
	arguments := stdjson.RawMessage(p.Arguments.Clone())
	if c.taskable {
		tc.Attendance.Patience = patience
	}
	s.running.Go(func() {
		defer close(c.done)
		defer leave()
		defer c.cancel(nil)
		c.result = s.guarded(func() *mcptypes.CallToolResult { return s.server.Tools.Call(c.ctx, tc, c.tool, arguments) })
	})
	return c, nil
}

// maxCalls is how many calls of a session that may take long are unfinished at a
// time. Those that wait for their client are among them.
const maxCalls = 4096

// enter counts the call, unless there are too many.
func (c *call) enter(task bool) (leave func(), err error) {
	s := c.session
	if tools.Short(c.tool) {
		return func() {}, nil
	}
	if s.calls.Add(1) > maxCalls {
		s.calls.Add(-1)
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%d calls are unfinished, and no more may be; nothing was started", maxCalls)
	}
	if task {
		if err := s.server.Tasks.enter(s.principal); err != nil {
			s.calls.Add(-1)
			return nil, err
		}
	}
	return func() {
		s.calls.Add(-1)
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

// maxText bounds the text of a result, in bytes of JSON. Clients keep longer ones
// from their model.
const maxText = 45_000

// begin notes the turn of the call.
func (c *call) begin(j *tools.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.job = j
	c.change()
}

// stuck returns the words of a turn whose model is stuck, "" for others.
func (c *call) stuck() string {
	c.mu.Lock()
	j := c.job
	c.mu.Unlock()
	if j == nil {
		return ""
	}
	return j.Stuck()
}

// change wakes the goroutines that wait for the call. c.mu is held.
func (c *call) change() {
	close(c.changed)
	c.changed = make(chan struct{})
	if c.task != nil {
		c.task.notify()
	}
}

// settle is how long a question waits for others to go out with it.
const settle = 20 * time.Millisecond

// serve waits for the call as a request does: for its result, or for questions to
// be asked. When the request is cancelled the turn is interrupted.
func (c *call) serve(q *request) (any, error) {
	c.attach(q)
	defer c.detach()
	// A client that cancels before it is answered does not come back, whatever the
	// answer was to be.
	context.AfterFunc(q.ctx, func() {
		if cause := context.Cause(q.ctx); errors.Is(cause, jsonrpc.ErrCancelled) {
			c.cancel(cause)
		}
	})
	var settled <-chan time.Time
	grace := c.session.grace(q)
	late := false // the grace is over
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
			return c.complete(c.result), nil // which goes out unless the client cancelled
		}
	}
}

// grace is when a request that declares tasks is answered with one.
func (s *Session) grace(q *request) <-chan time.Time {
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
		c.outlet = c.session.newOutlet(q, "thinking", c.sent, c.stuck)
		c.change()
	}
}

// detach ends everything that the request gets besides its answer.
func (c *call) detach() {
	c.mu.Lock()
	o := c.outlet
	c.outlet = nil
	c.change()
	c.mu.Unlock()
	sent := o.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = sent
}

// maxRounds is how many results of one call have questions. Clients fail a call soon
// after that, without a report.
const maxRounds = 8

// round returns the open questions as a result, nil when there are none. After too many
// rounds the turn continues without the call.
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

// drift lets the turn continue without the client.
func (c *call) drift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.adrift = true
}

// abandon interrupts the turn when a question has timed out and no client came back: none
// waits for the turn.
func (c *call) abandon() {
	c.mu.Lock()
	abandoned := c.outlet == nil && !c.adrift && c.job != nil
	c.mu.Unlock()
	if abandoned {
		c.cancel(errAbandoned)
	}
}

// hold waits while questions are out with the client, and reports whether it had to. A
// tool whose time is over waits for the answers before it returns.
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

// complete is the result of the call as it goes out.
func (c *call) complete(r *mcptypes.CallToolResult) *modern.CallToolResult {
	return &modern.CallToolResult{
		Meta: c.session.resultMeta(), Content: content(r), IsError: r.IsError, StructuredContent: r.StructuredContent,
	}
}

// content is that of a result, all of it texts.
func content(r *mcptypes.CallToolResult) []modern.ContentBlock {
	blocks := make([]modern.ContentBlock, 0, len(r.Content))
	for _, b := range r.Content {
		if t, ok := b.(*mcptypes.TextContent); ok {
			blocks = append(blocks, &modern.TextContent{Text: t.Text, Annotations: t.Annotations})
		}
	}
	return blocks
}

// watcher reports the turn to the request that waits for the call.
type watcher struct{ *call }

func (w watcher) current() *outlet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outlet
}

// Ready implements [thread.Watcher].
func (w watcher) Ready(ctx context.Context, _ protocol.EventMsg) { w.current().ready(ctx) }

// Event implements [thread.Watcher].
func (w watcher) Event(thread string, e protocol.Event) { w.current().event(thread, e) }

// Asked implements [thread.Watcher].
func (w watcher) Asked(*approval.Request) {}

// Decided implements [thread.Watcher].
func (w watcher) Decided(_ *approval.Request, d approval.Decision) {
	if d.Level >= slog.LevelWarn {
		w.current().warn(d.Detail)
	}
}

// Notice implements [thread.Watcher].
func (w watcher) Notice(words string) { w.current().warn(words) }

// silence watches a turn in the background. What it does is had with codex-wait.
type silence struct{}

// Ready implements [thread.Watcher].
func (silence) Ready(context.Context, protocol.EventMsg) {}

// Event implements [thread.Watcher].
func (silence) Event(string, protocol.Event) {}

// Asked implements [thread.Watcher].
func (silence) Asked(*approval.Request) {}

// Decided implements [thread.Watcher].
func (silence) Decided(*approval.Request, approval.Decision) {}

// Notice implements [thread.Watcher].
func (silence) Notice(string) {}
