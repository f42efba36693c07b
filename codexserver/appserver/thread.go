package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

	model string // at the start

	// Turns run one after another.
	effort  protocol.ReasoningEffort // the last change by a turn; "" without one
	window  *int64                   // the model's context window in tokens, as last reported
	unread  []apptypes.Input         // messages that the next turn sends again
	running atomic.Pointer[turn]     // the running turn; the last one between turns
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
	if err := c.call(ctx, startLimit, method, p, &r); err != nil {
		return nil, err
	}
	if r.Thread.ID == "" {
		return nil, fmt.Errorf("codex answered %s without the id of a thread", method)
	}
	confined, network := r.Sandbox.Type == apptypes.SandboxPolicyReadOnly, string(r.Sandbox.NetworkAccess)
	if offline := network == "" || network == "false" || network == "null"; s.readOnly && (!confined || !offline || policyOf(r.ApprovalPolicy) != protocol.ApprovalNever) {
		return nil, fmt.Errorf("no review: codex would not run it read-only, but in the sandbox %q under the approval policy %.100s", r.Sandbox.Type, r.ApprovalPolicy)
	}
	if method != apptypes.CallThreadResume && !confined {
		return nil, fmt.Errorf("codex was to start the thread read-only, and its sandbox is %q", r.Sandbox.Type)
	}
	s.now.Cwd = r.Cwd
	if s.now.Policy == "" {
		s.now.Policy = policyOf(r.ApprovalPolicy)
	}
	if err := c.signedIn(ctx, &r); err != nil {
		return nil, err
	}
	if r.ApprovalsReviewer != "" && r.ApprovalsReviewer != apptypes.ApprovalsReviewerUser {
		c.log.Warn("codex: approvals are decided by a reviewing model, not by the client", "reviewer", r.ApprovalsReviewer, "thread", r.Thread.ID)
	}
	if err := e.reaches(s.now.Cwd, &s.now.Sandbox); err != nil {
		return nil, err
	}
	conv := &conversation{engine: e, id: r.Thread.ID, host: host, settings: s, path: r.Thread.Path, model: r.Model}
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
	return c.run(ctx, func(ctx context.Context, r *turn) error { return c.start(ctx, r, in) }, nil)
}

// run runs the turn that start starts. Then, if not nil, is called before the last events of a turn that
// completed.
func (c *conversation) run(ctx context.Context, start func(context.Context, *turn) error, then func(context.Context, *turn)) error {
	r := newTurn(ctx, c.host)
	c.running.Store(r)
	c.host.Emit(protocol.TaskStarted{ModelContextWindow: c.window})
	failed := start(ctx, r)
	close(r.started)
	if failed == nil {
		r.await(ctx)
		if end, _ := r.app.End(); then != nil && end != nil && end.Status == apptypes.TurnStatusCompleted {
			then(ctx, r)
		}
		if c.path != "" {
			if kept := safefile.MirrorOf(c.engine.options.Store).Sync(c.path); kept != nil {
				r.report(protocol.BackgroundEvent{Message: fmt.Sprintf("the conversation is not in the store: %v", kept)})
			}
		}
	}
	err := r.end(ctx, failed)
	if !r.letters.prompted {
		c.unread = append(r.letters.again, c.unread...)
	}
	for _, l := range r.letters.missed() {
		c.unread = append(c.unread, l.input...)
	}
	if u := r.seen.usage; u != nil && u.ModelContextWindow != nil {
		c.window = u.ModelContextWindow
	}
	return err
}

// start starts a turn. If the app-server has not loaded the thread, because it is a new process or has
// dropped it, it resumes the thread first.
func (c *conversation) start(ctx context.Context, r *turn, in protocol.TurnInput) error {
	items, err := inputItems(in.Items)
	if err != nil {
		return err
	}
	c.effort = cmp.Or(in.Effort, c.effort)
	r.letters.again, c.unread = c.unread, nil
	now := &c.settings.now
	p := apptypes.TurnParams{
		ThreadID: c.id, Input: append(slices.Clip(r.letters.again), items...), OutputSchema: in.OutputSchema,
		Effort:        string(c.effort), // with every turn, because a new process does not know it
		SandboxPolicy: sandboxOf(now.Sandbox), ApprovalPolicy: policyParam(now.Policy),
	}
	for again := false; ; again = true {
		ch, err := c.engine.child(ctx)
		if err != nil {
			return err
		}
		t, err := c.thread(ctx, ch, again)
		if err != nil {
			return err
		}
		p.ClientUserMessageID = ""
		if !ch.version.Less(continuesTurns) {
			p.ClientUserMessageID = in.Key
		}
		if err := ch.explain(r.begin(ctx, t, now, &p)); err == nil || again || !errors.Is(err, errNotLoaded) {
			return err
		}
	}
}

// thread returns the conversation's thread in the child. It resumes the thread if the
// child has not loaded it, or if dropped is true.
func (c *conversation) thread(ctx context.Context, ch *child, dropped bool) (*thread, error) {
	if t := ch.find(c.id); t != nil && t.agent == "" && !dropped {
		return t, nil
	}
	p := c.settings.params(c.id)
	p.ExcludeTurns = true
	var r apptypes.ThreadReply
	if err := ch.call(ctx, startLimit, apptypes.CallThreadResume, p, &r); err != nil {
		return nil, fmt.Errorf("conversation %s cannot be resumed: %w", c.id, err)
	}
	return ch.load(c.id), nil
}

// thread is a thread that a child has in memory, of a conversation or of one of its sub-agents. The child's lock
// guards what changes.
type thread struct {
	id    string
	child *child
	root  *thread // that of the conversation, which may be this one
	agent string  // the path of the sub-agent, such as /root/worker, or its id; "" for the conversation's own thread

	// Of a conversation:
	turn   *turn    // the running one, or nil
	asking sync.Map // the [slots.Queue] by who asks: see queued
}

// settle waits for the end of the last turn of a thread in the app-server, which may have been interrupted, up to
// a limit: the app-server would take the next one for its continuation.
func (c *child) settle(ctx context.Context, id string) error {
	limited, stop := context.WithTimeoutCause(ctx, controlLimit, errStillStarting)
	defer stop()
	err := c.explain(c.app.Settle(limited, id))
	if errors.Is(err, errStillStarting) && len(c.turns()) == 0 {
		c.kill(err) // the next turn starts a new one
	}
	return err
}

var errStillStarting = errors.New("codex app-server has not ended the previous, interrupted turn; try again; other conversations are not affected")

// now returns the running turn of the conversation, or nil.
func (t *thread) now() *turn {
	t.child.mu.Lock()
	defer t.child.mu.Unlock()
	return t.root.turn
}

// leave records that a turn of the conversation has ended.
func (t *thread) leave(r *turn) {
	t.child.mu.Lock()
	defer t.child.mu.Unlock()
	if t.turn == r {
		t.turn = nil
	}
}

// agentNotification handles one notification of a sub-agent's thread. It records
// turns, so that an interrupt reaches them, and reports commands and patches, which
// questions refer to. It ignores messages, which are not part of the conversation.
func (t *thread) agentNotification(method string, n *apptypes.Note) {
	r := t.now()
	if r == nil {
		return
	}
	id, over := n.TurnID, method == apptypes.NoteTurnCompleted // it may have started before it was announced
	if method == apptypes.NoteTurnStarted && n.Turn != nil {
		id = n.Turn.ID
	}
	if over || id != "" {
		r.mu.Lock()
		if r.agents[t.id] = id; over {
			r.agents[t.id] = ""
		}
		r.mu.Unlock()
	}
	it := n.Item
	if method == apptypes.NoteItemCommandExecutionOutputDelta || it != nil && (it.Type == apptypes.ThreadItemCommandExecution || it.Type == apptypes.ThreadItemFileChange) {
		r.note(method, n)
	}
}

// announced records the threads of sub-agents that the notification announces. With the tools of
// many models, also of the newest Codex, that is the result of the tool that starts them.
func (t *thread) announced(n *apptypes.Note) {
	switch it := n.Item; {
	case it == nil:
	case it.Type == apptypes.ThreadItemSubAgentActivity:
		t.adopt(it.AgentThreadID, it.AgentPath)
	case it.Type == apptypes.ThreadItemCollabAgentToolCall && it.SenderThreadID == n.ThreadID:
		for _, id := range it.ReceiverThreadIDs {
			t.adopt(id, it.AgentPath)
		}
	}
}

// adopt records the thread of a sub-agent, unless it is known.
func (t *thread) adopt(id, path string) {
	c := t.child
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" && c.threads[id] == nil {
		c.threads[id] = &thread{id: id, child: c, root: t.root, agent: cmp.Or(path, id)}
	}
}

// find returns a thread, or nil.
func (c *child) find(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.threads[id]
}

// load returns the thread of a conversation, which this child has loaded, also if it was a sub-agent's before.
func (c *child) load(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[id]
	if t == nil || t.agent != "" {
		t = &thread{id: id, child: c}
		t.root = t
		c.threads[id] = t
	}
	return t
}

// forget drops the thread of a conversation and its sub-agents.
func (c *child) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.threads, func(_ string, t *thread) bool { return t.root.id == id })
}
