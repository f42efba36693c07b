package methods

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

func (ss *session) addConversationMethods(m *jsonrpc.Mux) {
	handleLong(ss, m, "newConversation", ss.newConversation)
	jsonrpc.Handle(m, "addConversationListener", ss.addListener)
	jsonrpc.Handle(m, "removeConversationListener", ss.removeListener)
}

// configOf checks the params of a new conversation and makes its cwd absolute.
func configOf(ctx context.Context, p *protocol.NewConversationParams) (protocol.Config, error) {
	if err := oneOf("/approvalPolicy", p.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return protocol.Config{}, err
	}
	if err := oneOf("/sandbox", p.Sandbox, protocol.SandboxModes()); err != nil {
		return protocol.Config{}, err
	}
	cwd := p.Cwd
	if cwd != "" {
		var err error
		if cwd, err = engine.Abs(ctx, cwd); err != nil {
			return protocol.Config{}, mcp.Invalid("/cwd", "%v", err)
		}
	}
	return protocol.Config{
		Model: p.Model, Profile: p.Profile, Cwd: cwd, ApprovalPolicy: p.ApprovalPolicy, Sandbox: p.Sandbox,
		Overrides: p.Config, BaseInstructions: p.BaseInstructions,
		IncludePlanTool: p.IncludePlanTool, IncludeApplyPatchTool: p.IncludeApplyPatchTool,
	}, nil
}

func (ss *session) newConversation(ctx context.Context, p protocol.NewConversationParams) (*protocol.NewConversationResult, error) {
	cfg, err := configOf(ctx, &p)
	if err != nil {
		return nil, err
	}
	folder, err := engine.Abs(ctx, ss.server.Folder)
	if err != nil {
		return nil, failed("error creating conversation", err)
	}
	warnings, err := ss.server.Tools.Conversation(&cfg, folder)
	if err != nil {
		return nil, refused("%v", err)
	}
	t, err := ss.client.Session().Threads().Start(ctx, cfg, ss.attendance())
	if err != nil {
		return nil, startError("error creating conversation", err)
	}
	t.Stay() // no method resumes it
	for _, w := range warnings {
		t.Warn("", w)
	}
	s := t.Info()
	return &protocol.NewConversationResult{
		ConversationID: t.ID(), Model: s.Model, ReasoningEffort: s.ReasoningEffort, RolloutPath: s.RolloutPath,
	}, nil
}

// startError returns the error for a conversation that did not start. An error in the
// configuration is the client's.
func startError(doing string, err error) error {
	var bad *engine.ConfigError
	if errors.As(err, &bad) {
		return refused("error deriving config: %v", bad.Err)
	}
	return failed(doing, err)
}

func (ss *session) addListener(_ context.Context, p protocol.AddConversationListenerParams) (*protocol.AddConversationListenerResult, error) {
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	t.Listen(id.String(), ss.client.Listener(func(e protocol.Event) { ss.sendListenerEvent(t.ID(), e) }))
	return &protocol.AddConversationListenerResult{SubscriptionID: id.String()}, nil
}

// sendListenerEvent sends an event to a listener of a conversation.
func (ss *session) sendListenerEvent(thread string, e protocol.Event) {
	b, _ := jsontext.AppendQuote([]byte(`{"conversationId":`), thread) // the error reports invalid UTF-8
	b, _ = jsontext.AppendQuote(append(b, `,"id":`...), e.ID)
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	ss.client.SendEvent("codex/event/"+e.Msg.EventType(), json.RawMessage(append(b, '}')), err)
}

func (ss *session) removeListener(_ context.Context, p protocol.RemoveConversationListenerParams) (empty, error) {
	if err := required("/subscriptionId", p.SubscriptionID); err != nil {
		return empty{}, err
	}
	if !ss.client.Session().Threads().Unlisten(p.SubscriptionID) {
		return empty{}, refused("subscription not found: %s", p.SubscriptionID)
	}
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
