package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/google/uuid"
)

// conversation is a thread with its host. It outlives the app-server: a new app-server
// resumes the thread.
type conversation struct {
	engine   *Engine
	id       string
	host     engine.Host
	settings *settings // to resume the thread with
	path     string    // of the rollout

	model, provider string // at the start

	mu     sync.Mutex
	effort protocol.ReasoningEffort // the last change by a turn; "" without one
	window *int64                   // the model's context window in tokens, as last reported

	running atomic.Pointer[promise] // the running turn; the last one between turns
	unread  []apptypes.Input        // messages that the next turn sends again
}

// checkID returns an error unless id is a thread's.
func checkID(id string) error {
	if err := uuid.Validate(id); err != nil {
		return fmt.Errorf("%q is not the id of a conversation: %w", id, err)
	}
	return nil
}

// begin starts or resumes a thread.
func (e *Engine) begin(ctx context.Context, c *child, method string, p *apptypes.ThreadParams, s *settings, host engine.Host) (engine.Conversation, error) {
	if err := unlinked(&s.now.Sandbox, s.now.Cwd, c.home); err != nil {
		return nil, err
	}
	var r apptypes.ThreadReply
	if err := c.patient(ctx, startLimit, method, p, &r); err != nil {
		return nil, err
	}
	if r.Thread.ID == "" {
		return nil, fmt.Errorf("codex answered %s without the id of a thread", method)
	}
	if s.readOnly {
		if err := isReadOnly(&r); err != nil {
			return nil, err
		}
	}
	if method != apptypes.CallThreadResume && r.Sandbox.Type != apptypes.SandboxPolicyReadOnly {
		return nil, fmt.Errorf("codex was to start the thread read-only, and its sandbox is %q", r.Sandbox.Type)
	}
	s.now.Cwd = r.Cwd
	if s.now.Policy == "" {
		s.now.Policy = policyOf(r.ApprovalPolicy)
	}
	if err := c.signedIn(ctx, &r); err != nil {
		return nil, err
	}
	if r.ApprovalsReviewer != "" && r.ApprovalsReviewer != byUser {
		c.log.Warn("codex: approvals are decided by a reviewing model, not by the client", "reviewer", r.ApprovalsReviewer, "thread", r.Thread.ID)
	}
	if err := e.reaches(s.now.Cwd, &s.now.Sandbox); err != nil {
		return nil, err
	}
	conv := &conversation{engine: e, id: r.Thread.ID, host: host, settings: s, path: r.Thread.Path, model: r.Model, provider: r.ModelProvider}
	word := s.now.Policy
	if !slices.Contains(protocol.ApprovalPolicies(), word) {
		word = "" // finer rules
	}
	host.Emit(protocol.SessionConfigured{
		SessionID: r.Thread.ID, Model: r.Model, ModelProviderID: r.ModelProvider, RolloutPath: r.Thread.Path,
		ApprovalPolicy: word, Cwd: r.Cwd,
		ReasoningEffort: protocol.ReasoningEffort(r.ReasoningEffort),
		InitialMessages: past(r.Thread.Turns),
		Access:          beyond(&s.now, &s.base), WritableRoots: slices.Clone(s.now.Sandbox.WritableRoots),
	})
	c.load(conv.id)
	return conv, nil
}

// ID implements [engine.Conversation].
func (c *conversation) ID() string { return c.id }

// Close implements [engine.Conversation]. The thread stays loaded, so that it can be
// continued; it ends with the app-server.
func (c *conversation) Close() error { return nil }

// Turn implements [engine.Conversation].
func (c *conversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	if in.Continue != nil {
		return c.goesOn(ctx, in)
	}
	if in.Review != nil && !c.settings.readOnly {
		return c.review(ctx, in)
	}
	return c.run(ctx, func(ctx context.Context) (*turn, error) { return c.start(ctx, in) }, nil)
}

// run runs the turn that start starts. Then, if not nil, is called before the last events of a turn that
// completed.
func (c *conversation) run(ctx context.Context, start func(context.Context) (*turn, error), then func(context.Context, *turn)) error {
	c.mu.Lock()
	window := c.window
	c.mu.Unlock()
	now := &promise{begun: make(chan struct{})}
	c.running.Store(now)
	c.host.Emit(protocol.TaskStarted{ModelContextWindow: window})
	s, err := start(ctx)
	if err == nil {
		now.turn = s
	}
	close(now.begun)
	if err != nil {
		return c.failed(ctx, err)
	}
	events, err := s.await(ctx)
	if err == nil && then != nil {
		then(ctx, s)
	}
	if c.path != "" {
		if kept := safefile.MirrorOf(c.engine.options.Store).Sync(c.path); kept != nil {
			s.report(protocol.BackgroundEvent{Message: fmt.Sprintf("the conversation is not in the store: %v", kept)})
		}
	}
	s.end(events)
	c.unread = s.unread(c.unread)
	c.mu.Lock()
	if u := s.tr.usage; u != nil && u.ModelContextWindow != nil {
		c.window = u.ModelContextWindow
	}
	c.mu.Unlock()
	return err
}

// failed emits the events of a turn that could not be started, and returns its error.
func (c *conversation) failed(ctx context.Context, err error) error {
	tr := newTranslator()
	events, err := tr.fail(err.Error())
	if ctx.Err() != nil {
		events, err = tr.abort(context.Cause(ctx))
	}
	for _, e := range events {
		c.host.Emit(e)
	}
	return err
}

// start starts a turn. If the app-server has not loaded the thread, because it is a new process or has
// dropped it, it resumes the thread first.
func (c *conversation) start(ctx context.Context, in protocol.TurnInput) (*turn, error) {
	items, err := inputItems(in.Items)
	if err != nil {
		return nil, err
	}
	p := apptypes.TurnParams{
		ThreadID: c.id, Input: append(slices.Clip(c.unread), items...), OutputSchema: in.OutputSchema, Effort: string(c.holds(in)),
		SandboxPolicy: sandboxOf(c.settings.now.Sandbox), ApprovalPolicy: policyParam(c.settings.now.Policy),
	}
	for again := false; ; again = true {
		ch, err := c.engine.child(ctx)
		if err != nil {
			return nil, err
		}
		t, err := c.thread(ctx, ch, again)
		if err != nil {
			return nil, err
		}
		p.ClientUserMessageID = ""
		if !ch.version.Less(continuesTurns) {
			p.ClientUserMessageID = in.Key
		}
		s, err := t.begin(ctx, c, &p)
		if err = ch.explain(err); err == nil || again || !errors.Is(err, errNotLoaded) {
			return s, err
		}
	}
}

// thread returns the conversation's thread in the child. It resumes the thread if the
// child has not loaded it, or if dropped is true.
func (c *conversation) thread(ctx context.Context, ch *child, dropped bool) (*thread, error) {
	if t := ch.find(c.id); t != nil && !dropped {
		return t, nil
	}
	p := c.settings.params(c.id)
	p.ExcludeTurns = true
	var r apptypes.ThreadReply
	if err := ch.patient(ctx, startLimit, apptypes.CallThreadResume, p, &r); err != nil {
		return nil, fmt.Errorf("conversation %s cannot be resumed: %w", c.id, err)
	}
	return ch.load(c.id), nil
}

// holds returns the effort that this turn or earlier ones chose, "" if none did. It is sent
// with every turn, because a new process does not know it.
func (c *conversation) holds(in protocol.TurnInput) protocol.ReasoningEffort {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.Effort != "" {
		c.effort = in.Effort
	}
	return c.effort
}

// thread is a thread that a child has in memory.
type thread struct {
	id    string
	child *child

	mu     sync.Mutex
	turn   *turn                    // the last one, which may run; nil before the first
	asking map[string]*elicit.Slots // by who asks: see queue
}

// settle waits for the end of the last turn, which may have been interrupted, up to a limit: the
// app-server would take the next one for its continuation.
func (t *thread) settle(ctx context.Context) error {
	last := t.last()
	if last == nil {
		return nil
	}
	limit := time.NewTimer(controlLimit)
	defer limit.Stop()
	select {
	case <-last.app.Ended():
		return nil
	case <-limit.C:
		if !t.child.busy() {
			t.child.kill(errStillStarting) // the next turn starts a new one
		}
		return errStillStarting
	case <-t.child.end.gone:
		return t.child.obituary()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStillStarting = errors.New("codex app-server has not ended the previous, interrupted turn; try again; other conversations are not affected")

// begin starts a turn. The turns of a conversation run one after another. It waits until the app-server has
// begun it, or for the end of ctx.
func (t *thread) begin(ctx context.Context, c *conversation, p *apptypes.TurnParams) (*turn, error) {
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	r := newTurn(ctx, t, c)
	if err := t.start(r, p); err != nil {
		r.cancel(err)
		return nil, err
	}
	if err := r.accepted(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// start asks the app-server to start a turn.
func (t *thread) start(r *turn, p *apptypes.TurnParams) (err error) {
	r.mu.Lock() // a notification of the turn waits for app
	defer r.mu.Unlock()
	if r.app, err = t.child.app.Begin(p, r.note); err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.turn = r
	}
	return err
}

// last returns the last turn, or nil.
func (t *thread) last() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn
}

// now returns the running turn, or nil.
func (t *thread) now() *turn {
	r := t.last()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	return r
}

// agentNotification handles one notification of a sub-agent's thread. It records
// turns, so that an interrupt reaches them, and reports commands and patches, which
// questions refer to. It ignores messages, which are not part of the conversation.
func (t *thread) agentNotification(method string, n *apptypes.Note) {
	r := t.now()
	if r == nil {
		return
	}
	switch method {
	case apptypes.NoteTurnStarted:
		if n.Turn != nil {
			r.agentTurn(n.ThreadID, n.Turn.ID)
		}
	case apptypes.NoteTurnCompleted:
		r.agentTurn(n.ThreadID, "")
	case apptypes.NoteItemCommandExecutionOutputDelta:
		r.translate(method, n)
	case apptypes.NoteItemStarted, apptypes.NoteItemCompleted:
		if method == apptypes.NoteItemStarted && n.TurnID != "" {
			r.agentTurn(n.ThreadID, n.TurnID) // which may have started before it was announced
		}
		if it, err := appclient.ReadItem(n.Item); err == nil && (it.Type == apptypes.ThreadItemCommandExecution || it.Type == apptypes.ThreadItemFileChange) {
			r.translate(method, n)
		}
	}
}

// subAgent is a thread that a conversation's thread started by itself.
type subAgent struct {
	root *thread
	path string // such as /root/worker, or the id of its thread
}

// announced records the threads of sub-agents that the notification announces. With the tools of
// many models, also of the newest Codex, that is the result of the tool that starts them.
func (c *child) announced(root *thread, method string, n *apptypes.Note) {
	if method != apptypes.NoteItemStarted && method != apptypes.NoteItemCompleted || n.Item == nil {
		return
	}
	it, err := appclient.ReadItem(n.Item)
	if err != nil {
		return
	}
	var found []string
	switch {
	case it.Type == apptypes.ThreadItemSubAgentActivity:
		found = []string{it.AgentThreadID}
	case it.Type == apptypes.ThreadItemCollabAgentToolCall && it.SenderThreadID == n.ThreadID:
		found = it.ReceiverThreadIDs
	}
	for _, id := range found {
		c.adopt(root, id, it.AgentPath)
	}
}

// root returns the thread of the conversation that a thread belongs to. If the thread is a
// sub-agent's, it also returns the sub-agent's path. It returns nil for an unknown thread.
func (c *child) root(id string) (*thread, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.loaded[id]; t != nil {
		return t, ""
	}
	a := c.agents[id]
	return a.root, a.path
}

// find returns the thread of a conversation, or nil.
func (c *child) find(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loaded[id]
}

// load returns the thread of a conversation, which this child has loaded, also if it was a sub-agent's before.
func (c *child) load(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.loaded[id]
	if t == nil {
		t = &thread{id: id, child: c}
		c.loaded[id] = t
		delete(c.agents, id)
	}
	return t
}

// adopt records the thread of a sub-agent, unless it is known.
func (c *child) adopt(root *thread, id, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" && c.loaded[id] == nil && c.agents[id].root == nil {
		c.agents[id] = subAgent{root: root, path: cmp.Or(path, id)}
	}
}

// forget drops the thread of a conversation and its sub-agents.
func (c *child) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.loaded[id]; t != nil {
		delete(c.loaded, id)
		maps.DeleteFunc(c.agents, func(_ string, a subAgent) bool { return a.root == t })
	}
}

// turnsOf returns the turns of a thread, the last one first. An error is the last value.
func (c *child) turnsOf(ctx context.Context, id string) iter.Seq2[*apptypes.Turn, error] {
	return func(yield func(*apptypes.Turn, error) bool) {
		params := apptypes.TurnsParams{ThreadID: id, SortDirection: apptypes.SortDirectionDesc, Limit: 50}
		for {
			var page apptypes.TurnsReply
			if err := c.call(ctx, controlLimit, apptypes.CallThreadTurnsList, params, &page); err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Data {
				if !yield(&page.Data[i], nil) {
					return
				}
			}
			if page.NextCursor == "" || len(page.Data) == 0 {
				return
			}
			params.Cursor = page.NextCursor
		}
	}
}
