package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json/jsontext"
)

// conversation is a thread with its host. It outlives the app-server: a new app-server
// resumes the thread.
type conversation struct {
	engine   *Engine
	id       string
	host     engine.Host
	settings *settings // to resume the thread with
	path     string    // of the rollout

	model string                   // at the start
	usual protocol.ReasoningEffort // the effort at the start, "" if Codex did not say it

	choices *threadfile.Store
	chosen  *threadfile.Thread // what is kept of what its calls chose; only turns use it

	// Turns run one after another.
	effort protocol.ReasoningEffort // the last change by a turn; "" without one
	window *int64                   // the model's context window in tokens, as last reported
	unread []apptypes.Input         // messages that the next turn sends again
	// unconfined is true when a turn has said that Codex's sandbox runs no command.
	unconfined atomic.Bool
	news       *news                // what the next turn says, also that of another app-server
	running    atomic.Pointer[turn] // the running turn; the last one between turns
}

// choice returns what is kept of a conversation after its call has chosen.
func (s *settings) choice(id string) *threadfile.Thread {
	kept := protocol.Kept{Policy: s.now.Policy, Sandbox: s.now.Sandbox, Choices: s.choices}
	t := &threadfile.Thread{ID: id, Kept: kept, Formed: s.formed}
	if s.kept != nil {
		t.Policy, t.Sandbox = s.kept.Policy, s.kept.Sandbox
	}
	if s.now.Search == "" && s.base.Search != "" {
		t.Choices.WebSearch = new(false)
	}
	return t
}

// openThread starts a thread, or resumes it if the parameters name one. It returns an error if a model would decide about approvals
// although a person is to.
func (e *Engine) openThread(
	ctx context.Context, c *child, p *apptypes.ThreadParams, said *news,
) (r apptypes.ThreadReply, err error) {
	method := apptypes.CallThreadStart
	if p.ThreadID != "" {
		method = apptypes.CallThreadResume
		limited, stop := context.WithTimeoutCause(ctx, controlLimit, late(apptypes.CallThreadGoalSet, controlLimit))
		defer stop()
		if _, err := c.newThread(p.ThreadID, said).pause(limited); err != nil { // Codex would go on with it at once
			return r, c.explain(limited, err)
		}
	}
	if err := c.call(ctx, startLimit, method, p, &r); err != nil {
		return r, err
	}
	if r.Thread.ID == "" {
		return r, fmt.Errorf("codex answered %s without the id of a thread", method)
	}
	if e.options.Codex.Reviewer == setting.ReviewerPerson && r.ApprovalsReviewer != apptypes.ApprovalsReviewerUser {
		return r, &engine.RefusedError{Err: fmt.Errorf("a person is to decide about approvals, and codex says that "+
			"%q would; an administrator may have set that", r.ApprovalsReviewer)}
	}
	return r, nil
}

// begin starts a thread, or resumes that of an id.
func (e *Engine) begin(
	ctx context.Context, c *child, id string, s *settings, host engine.Host,
) (engine.Conversation, error) {
	if err := e.reaches(s.now.Cwd, &s.now.Sandbox, c.home); err != nil {
		return nil, err
	}
	said := &news{}
	if t, _ := c.find(id); t != nil && t.agent == "" {
		said = t.news
	}
	r, err := e.openThread(ctx, c, s.params(id), said)
	if err != nil {
		return nil, err
	}
	confined, network := r.Sandbox.Type == apptypes.SandboxPolicyReadOnly, string(r.Sandbox.NetworkAccess)
	if offline := network == "" || network == "false" || network == "null"; s.readOnly &&
		(!confined || !offline || policyOf(r.ApprovalPolicy) != protocol.ApprovalNever) {
		return nil, fmt.Errorf("no review: codex would not run it read-only, but in the sandbox %q under the "+
			"approval policy %.100s", r.Sandbox.Type, r.ApprovalPolicy)
	}
	if id == "" && !confined {
		return nil, fmt.Errorf("codex was to start the thread read-only, and its sandbox is %q", r.Sandbox.Type)
	}
	s.now.Cwd, s.now.Policy = r.Cwd, cmp.Or(s.now.Policy, policyOf(r.ApprovalPolicy))
	if err := c.signedIn(ctx, &r); err != nil {
		return nil, err
	}
	if err := e.reaches(s.now.Cwd, &s.now.Sandbox, c.home); err != nil {
		return nil, err
	}
	conv := &conversation{
		engine: e, id: r.Thread.ID, host: host, settings: s, path: r.Thread.Path, model: r.Model, news: said,
		usual: protocol.ReasoningEffort(r.ReasoningEffort),
	}
	if s.formed != nil {
		conv.effort = s.formed.Effort
	}
	s.writes = box.Writable(s.now.Sandbox, s.now.Cwd, os.Environ())
	c.load(conv.id, said)
	word := s.now.Policy
	if !slices.Contains(protocol.ApprovalPolicies(), word) {
		word = "" // finer rules
	}
	conv.choices, conv.chosen = c.choices, s.choice(conv.id)
	if s.keeps {
		if err := conv.choices.Put(conv.chosen); err != nil {
			return nil, err
		}
	}
	host.Emit(protocol.SessionConfigured{
		SessionID: r.Thread.ID, Model: r.Model, ModelProviderID: r.ModelProvider, RolloutPath: r.Thread.Path,
		ApprovalPolicy: word, Cwd: r.Cwd,
		ReasoningEffort: protocol.ReasoningEffort(r.ReasoningEffort),
		InitialMessages: past(r.Thread.Turns),
		Access:          beyond(&s.now, &s.base), WritableRoots: slices.Clone(s.now.Sandbox.WritableRoots),
	})
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
	defer c.formless()
	return c.run(ctx, in.Again, func(ctx context.Context, r *turn) error {
		err := c.start(ctx, r, in)
		r.prompt = protocol.TextOf(in.Items)
		return err
	})
}

// run runs the turn that start starts. If it does so again, it goes on with the last one.
func (c *conversation) run(ctx context.Context, again bool, start func(context.Context, *turn) error) error {
	r := newTurn(ctx, c.host)
	r.reconnect = c.engine.options.Codex.Reconnect
	r.leaves = again && c.running.Load().leavesCommands()
	c.running.Store(r)
	c.host.Emit(protocol.TaskStarted{ModelContextWindow: c.window})
	failed := start(ctx, r)
	close(r.started)
	if failed == nil {
		r.await(ctx)
		r.leavesNothing(ctx)
	}
	r.trial.Wait()
	if ctx.Err() != nil {
		c.saves(r.prompt)
	}
	if failed == nil {
		if c.path != "" {
			if kept := safefile.MirrorOf(c.engine.options.Store).Sync(c.path); kept != nil {
				r.report(protocol.BackgroundEvent{Message: fmt.Sprintf("the conversation is not in the store: %v",
					kept)})
			}
		}
	}
	err := r.end(failed)
	if !r.letters.prompted {
		c.unread = append(r.letters.again, c.unread...)
	}
	for _, l := range r.letters.missed() {
		c.unread = append(c.unread, l.input...)
	}
	if u := r.usage; u != nil && u.ModelContextWindow != nil {
		c.window = u.ModelContextWindow
	}
	return err
}

// saves has Codex write the rollout of a conversation whose first turn was interrupted before the model was asked. Codex makes that
// file late, and without it the conversation would be gone with the app-server, though its id is known.
func (c *conversation) saves(prompt string) {
	if c.path == "" || prompt == "" {
		return
	}
	if _, err := os.Stat(c.path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(prompt, "\uFFFD"))
	if err != nil {
		return
	}
	said := fmt.Appendf(nil, `{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quoted)
	p := apptypes.InjectParams{ThreadID: c.id, Items: []stdjson.RawMessage{said}}
	ctx, stop := context.WithTimeout(context.Background(), controlLimit)
	defer stop()
	ch, err := c.engine.child(ctx)
	if err == nil {
		err = ch.control(ctx, apptypes.CallThreadInjectItems, p, nil)
	}
	if err != nil {
		c.engine.options.Logger.Warn("codex: the conversation is not saved", "thread", c.id, "error", err)
	}
}

// start starts a turn.
func (c *conversation) start(ctx context.Context, r *turn, in protocol.TurnInput) error {
	items, err := inputItems(in.Items)
	if err != nil {
		return err
	}
	c.effort = cmp.Or(in.Effort, c.effort)
	if in.Effort != "" && c.chosen != nil {
		c.chosen.Choices.Effort = in.Effort
		if err := c.choices.Put(c.chosen); err != nil {
			return err
		}
	}
	if in.OutputSchema != nil && !in.Again { // with which Codex lets the model do no work, see Form
		words := text.Tagged("output_schema", outputschema.Words(in.OutputSchema))
		items = append(items, appclient.Text(words)...)
	}
	r.letters.again, c.unread = c.unread, nil
	now := &c.settings.now
	p := apptypes.TurnParams{
		ThreadID: c.id, ClientUserMessageID: in.Key, Input: append(slices.Clip(r.letters.again), items...),
		Effort:        string(c.effort), // with every turn, because a new process does not know it
		SandboxPolicy: sandboxOf(now.Sandbox), ApprovalPolicy: policyParam(now.Policy),
	}
	return c.begins(ctx, r, &p)
}

// begins begins a turn in the app-server. If that has not loaded the thread, because it is a new process or has dropped it,
// it resumes the thread first.
func (c *conversation) begins(ctx context.Context, r *turn, p *apptypes.TurnParams) error {
	for again := false; ; again = true {
		ch, err := c.engine.child(ctx)
		if err != nil {
			return err
		}
		t, err := c.thread(ctx, ch, again)
		if err != nil {
			return err
		}
		if !r.form { // which runs nothing
			if err := c.confined(ctx, ch, r); err != nil {
				return err
			}
		}
		if err := ch.explain(ctx, r.begin(ctx, t, c.settings, p)); err == nil || again ||
			!errors.Is(err, errNotLoaded) {
			return err
		}
	}
}

// thread returns the conversation's thread in the child. It resumes the thread if the
// child has not loaded it, or if dropped is true.
func (c *conversation) thread(ctx context.Context, ch *child, dropped bool) (*thread, error) {
	if t, _ := ch.find(c.id); t != nil && t.agent == "" && !dropped {
		return t, nil
	}
	p := c.settings.params(c.id)
	p.ExcludeTurns = true
	if _, err := c.engine.openThread(ctx, ch, p, c.news); err != nil {
		return nil, fmt.Errorf("conversation %s cannot be resumed: %w", c.id, err)
	}
	return ch.load(c.id, c.news), nil
}

// thread is a thread that a child has in memory, of a conversation or of one of its sub-agents. The child's lock
// guards what changes.
type thread struct {
	id    string
	child *child
	root  *thread // that of the conversation, which may be this one
	agent string  // the path of the sub-agent, such as /root/worker, or its id; "" for the conversation's own thread

	// Of a conversation:
	turn    *turn                    // the running one, or nil
	foreign map[string]chan struct{} // the turns that are being ended, by id; closed at the end: see foreign.go
	news    *news
	pausing chan struct{} // is full while a goal is paused

	asking sync.Map // the [slots.Queue] by who asks: see queued
}

var errStillStarting = errors.New("codex app-server has not ended the previous, interrupted turn; try again; other " +
	"conversations are not affected")

// announced records the threads of sub-agents that the notification announces, unless they are known. With the tools of
// many models, also of the newest Codex, that is the result of the tool that starts them.
func (t *thread) announced(n *apptypes.Note) {
	var ids []string
	switch it := n.Item; {
	case it == nil:
	case it.Type == apptypes.ThreadItemSubAgentActivity:
		ids = []string{it.AgentThreadID}
	case it.Type == apptypes.ThreadItemCollabAgentToolCall && it.SenderThreadID == n.ThreadID:
		ids = it.ReceiverThreadIDs
	}
	t.child.mu.Lock()
	defer t.child.mu.Unlock()
	for _, id := range ids {
		if id != "" && t.child.threads[id] == nil {
			t.child.threads[id] = &thread{id: id, child: t.child, root: t.root, agent: cmp.Or(n.Item.AgentPath, id)}
		}
	}
}

// find returns a thread and the running turn of its conversation, each of which may be nil.
func (c *child) find(id string) (t *thread, r *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t = c.threads[id]; t != nil {
		r = t.root.turn
	}
	return t, r
}

// load returns the thread of a conversation, which this child has loaded, also if it was a sub-agent's before.
func (c *child) load(id string, said *news) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[id]
	if t == nil || t.agent != "" {
		t = c.newThread(id, said)
		c.threads[id] = t
	}
	return t
}

// newThread returns the thread of a conversation, which is not yet loaded.
func (c *child) newThread(id string, said *news) *thread {
	t := &thread{id: id, child: c, foreign: map[string]chan struct{}{}, news: said, pausing: make(chan struct{}, 1)}
	t.root = t
	return t
}
