package methods

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/uuid"
)

func (ss *session) addConversationMethods(m *jsonrpc.Mux) {
	handleLong(ss, m, "newConversation", ss.newConversation)
	jsonrpc.Handle(m, "addConversationListener", ss.addListener)
	jsonrpc.Handle(m, "removeConversationListener", ss.removeListener)
	jsonrpc.Handle(m, "sendUserMessage", ss.sendUserMessage)
	m.Handle("interruptConversation", jsonrpc.HandlerFunc(ss.interruptConversation))
}

func (ss *session) newConversation(
	ctx context.Context, p protocol.NewConversationParams,
) (*protocol.NewConversationResult, error) {
	cfg := protocol.Config{
		Model: p.Model, Profile: p.Profile, Cwd: p.Cwd,
		ApprovalPolicy: p.ApprovalPolicy, Sandbox: p.Sandbox, Overrides: p.Config,
		IncludeApplyPatchTool: p.IncludeApplyPatchTool,
		Choices: protocol.Choices{
			BaseInstructions: p.BaseInstructions, IncludePlanTool: p.IncludePlanTool,
		},
	}
	if err := oneOf("/approvalPolicy", cfg.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return nil, err
	}
	if err := oneOf("/sandbox", cfg.Sandbox, protocol.SandboxModes()); err != nil {
		return nil, err
	}
	if cfg.Cwd != "" {
		var err error
		if cfg.Cwd, err = engine.Abs(ctx, cfg.Cwd); err != nil {
			return nil, mcp.Invalid("/cwd", "%v", err)
		}
	}
	folder, err := engine.Abs(ctx, ss.server.Folder)
	if err != nil {
		return nil, failed("error creating conversation", err)
	}
	warnings, err := ss.server.Tools.Rules.Conversation(&cfg, folder)
	if err != nil {
		return nil, refused("%v", err)
	}
	a := ss.attendance()
	a.Keeps = true // no method resumes it
	caller := ss.server.Tools.Caller(ss.client.ClientName(), ss.client.Roots)
	t, err := ss.client.Session().Threads().Start(ctx, caller, cfg, a)
	var bad *engine.ConfigError
	if errors.As(err, &bad) { // the client's
		return nil, refused("error deriving config: %v", bad.Err)
	}
	if err != nil {
		return nil, failed("error creating conversation", err)
	}
	for _, w := range warnings {
		t.Warn("", w)
	}
	s := t.Info()
	return &protocol.NewConversationResult{
		ConversationID: t.ID(), Model: s.Model, ReasoningEffort: s.ReasoningEffort, RolloutPath: s.RolloutPath,
	}, nil
}

func (ss *session) addListener(
	_ context.Context, p protocol.AddConversationListenerParams,
) (*protocol.AddConversationListenerResult, error) {
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	ss.listening.Store(id.String(), t.Listen(ss.client.Listener(t.ID())))
	return &protocol.AddConversationListenerResult{SubscriptionID: id.String()}, nil
}

func (ss *session) removeListener(_ context.Context, p protocol.RemoveConversationListenerParams) (empty, error) {
	if err := required("/subscriptionId", p.SubscriptionID); err != nil {
		return empty{}, err
	}
	stop, ok := ss.listening.LoadAndDelete(p.SubscriptionID)
	if !ok {
		return empty{}, refused("subscription not found: %s", p.SubscriptionID)
	}
	stop.(func())()
	return empty{}, nil
}

// find returns the open thread that a method names.
func (ss *session) find(id string) (*thread.Thread, error) {
	if err := required("/conversationId", id); err != nil {
		return nil, err
	}
	t := ss.client.Session().Threads().Find(id)
	if t == nil {
		return nil, refused("conversation not found: %s", id)
	}
	return t, nil
}

// sendUserMessage queues a turn. Only the end of the session waits for it.
func (ss *session) sendUserMessage(_ context.Context, p protocol.SendUserMessageParams) (empty, error) {
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return empty{}, err
	}
	if p.Items == nil {
		return empty{}, mcp.Invalid("/items", "missing")
	}
	input := protocol.TurnInput{Items: p.Items}
	turn := ss.server.Tools.Message(ss.client.Session().Context(), t, ss.attendance(), input)
	ss.client.Session().Go(func() {
		if err := turn.Wait(); err != nil {
			ss.client.Session().Log().Debug("turn", "thread", t.ID(), "error", err)
		}
	})
	return empty{}, nil
}

// attendance returns the attendance for turns that the methods start. The events go to the
// listeners of the thread.
func (ss *session) attendance() thread.Attend {
	return thread.Attend{Client: ss.client.Outlet(), Ask: ss.client.PlaceOf(ss.ask), Elicit: ss.client.Elicit}
}

// interruptConversation interrupts the running or first queued turn at once, on the read
// loop. It answers when the turn has ended.
func (ss *session) interruptConversation(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p protocol.InterruptConversationParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	ended := t.Stop(thread.ErrInterrupted)
	if ended == nil {
		return nil, refused("no turn of conversation %s is running", p.ConversationID)
	}
	ss.client.Session().Later(r, func() (any, error) {
		select {
		case <-ended:
			return &protocol.InterruptConversationResult{AbortReason: protocol.AbortInterrupted}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	return nil, nil
}

// ask asks the client the questions of a message's turn, by execCommandApproval and
// applyPatchApproval.
func (ss *session) ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	codex := r.Subject.Codex()
	if codex == nil {
		return ss.client.AskFor("")(ctx, r)
	}
	caller := elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		var result json.RawMessage
		err := ss.client.Call(ctx, codex.Method, codex.Params(r.Thread.ID), &result)
		return result, err
	})
	// A client that uses these methods also handles these requests.
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	o := ss.server.Approvals
	o.NoLegacyFlat = false      // their answers are flat
	o.Schema = elicit.FormEmpty // they show no form, so they offer no lasting rule
	return elicit.NewAsker(caller, able, &o).Ask(ctx, r.Question), nil
}
