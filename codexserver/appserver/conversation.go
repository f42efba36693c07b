package appserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// conversation is a thread with its host. It outlives the app-server: a new app-server
// resumes the thread.
type conversation struct {
	engine *Engine
	id     string
	host   engine.Host
	params threadParams // to resume the thread with
	path   string       // of the rollout
	rules  box.Grant    // that each turn gets

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

// begin starts, resumes or forks a thread.
func (e *Engine) begin(ctx context.Context, c *child, method string, p threadParams, host engine.Host) (engine.Conversation, error) {
	home, err := e.homeOf(c)
	if err != nil {
		return nil, err
	}
	if err := unlinked(&p.now.Sandbox, p.now.Cwd, home); err != nil {
		return nil, err
	}
	var r threadReply
	if err := c.patient(ctx, startLimit, method, p, &r); err != nil {
		return nil, err
	}
	if r.Thread.ID == "" {
		return nil, fmt.Errorf("codex answered %s without the id of a thread", method)
	}
	if p.readOnly {
		if err := r.isReadOnly(); err != nil {
			return nil, err
		}
	}
	if method != apptypes.CallThreadResume && r.Sandbox.Type != apptypes.SandboxPolicyReadOnly {
		return nil, fmt.Errorf("codex was to start the thread read-only, and its sandbox is %q", r.Sandbox.Type)
	}
	p.now.Cwd = r.Cwd
	if p.now.Policy == "" {
		p.now.Policy = policyOf(r.ApprovalPolicy)
	}
	if err := c.signedIn(ctx, &r); err != nil {
		return nil, err
	}
	if r.ApprovalsReviewer != "" && r.ApprovalsReviewer != byUser {
		c.log.Warn("codex: approvals are decided by a reviewing model, not by the client", "reviewer", r.ApprovalsReviewer, "thread", r.Thread.ID)
	}
	if err := e.reaches(p.now.Cwd, &p.now.Sandbox); err != nil {
		return nil, err
	}
	conv := &conversation{engine: e, id: r.Thread.ID, host: host, params: p, path: r.Thread.Path, model: r.Model, provider: r.ModelProvider, rules: p.now}
	host.Emit(protocol.SessionConfigured{
		SessionID: r.Thread.ID, Model: r.Model, ModelProviderID: r.ModelProvider, RolloutPath: r.Thread.Path,
		ApprovalPolicy: wordOf(p.now.Policy), Cwd: r.Cwd,
		ReasoningEffort: protocol.ReasoningEffort(r.ReasoningEffort),
		InitialMessages: past(r.Thread.Turns),
		Access:          beyond(&p.now, &p.base), WritableRoots: slices.Clone(p.now.Sandbox.WritableRoots),
	})
	c.load(conv.id, conv.rules)
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
	if in.Review != nil && !c.params.readOnly {
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
	defer s.thread.free()
	if err == nil && then != nil {
		then(ctx, s)
	}
	if c.path != "" {
		if kept := c.engine.options.Store.Sync(c.path); kept != nil {
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
		SandboxPolicy: sandboxOf(c.rules.Sandbox), ApprovalPolicy: policyParam(c.rules.Policy),
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
		s, err := t.begin(ctx, c.host, &p)
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
	p := c.params
	p.ThreadID, p.ExcludeTurns = c.id, true
	var r threadReply
	if err := ch.patient(ctx, startLimit, apptypes.CallThreadResume, p, &r); err != nil {
		return nil, fmt.Errorf("conversation %s cannot be resumed: %w", c.id, err)
	}
	return ch.load(c.id, c.rules), nil
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
