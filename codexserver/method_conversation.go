package codexserver

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func (ss *session) addConversationMethods(m *jsonrpc.Mux) {
	jsonrpc.Handle(m, "newConversation", ss.newConversation)
	jsonrpc.Handle(m, "addConversationListener", ss.addListener)
	jsonrpc.Handle(m, "removeConversationListener", ss.removeListener)
	if r, ok := ss.server.engine.(engine.Resumer); ok {
		jsonrpc.Handle(m, "resumeConversation", func(ctx context.Context, p protocol.ResumeConversationParams) (*protocol.ResumeConversationResult, error) {
			return ss.resumeConversation(ctx, r, p)
		})
	}
	if l, ok := ss.server.engine.(engine.Library); ok {
		jsonrpc.Handle(m, "listConversations", func(ctx context.Context, p protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
			if p.PageSize != nil && *p.PageSize < 0 {
				return nil, invalid("/pageSize", "want 0 or more")
			}
			list, err := l.List(ctx, p)
			if err != nil {
				return nil, failed("failed to list conversations", err)
			}
			return list, nil
		})
		jsonrpc.Handle(m, "archiveConversation", func(ctx context.Context, p protocol.ArchiveConversationParams) (empty, error) {
			return empty{}, ss.archiveConversation(ctx, l, p)
		})
	}
}

// configOf checks the params of a new conversation and makes its cwd absolute.
func configOf(at string, p *protocol.NewConversationParams) (protocol.Config, error) {
	if p == nil {
		p = &protocol.NewConversationParams{}
	}
	if err := oneOf(at+"/approvalPolicy", p.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return protocol.Config{}, err
	}
	if err := oneOf(at+"/sandbox", p.Sandbox, protocol.SandboxModes()); err != nil {
		return protocol.Config{}, err
	}
	cwd := p.Cwd
	if cwd != "" {
		var err error
		if cwd, err = filepath.Abs(cwd); err != nil {
			return protocol.Config{}, invalid(at+"/cwd", "%v", err)
		}
	}
	return protocol.Config{
		Model: p.Model, Profile: p.Profile, Cwd: cwd, ApprovalPolicy: p.ApprovalPolicy, Sandbox: p.Sandbox,
		Overrides: p.Config, BaseInstructions: p.BaseInstructions,
		IncludePlanTool: p.IncludePlanTool, IncludeApplyPatchTool: p.IncludeApplyPatchTool,
	}, nil
}

func (ss *session) newConversation(ctx context.Context, p protocol.NewConversationParams) (*protocol.NewConversationResult, error) {
	cfg, err := configOf("", &p)
	if err != nil {
		return nil, err
	}
	if cfg.Cwd == "" {
		if cfg.Cwd, err = filepath.Abs(ss.server.options.Folder); err != nil {
			return nil, failed("error creating conversation", err)
		}
	}
	c, err := ss.start(ctx, message{ss}, cfg)
	if err != nil {
		return nil, startError("error creating conversation", err)
	}
	s := c.host.info()
	return &protocol.NewConversationResult{
		ConversationID: c.ID(), Model: s.Model, ReasoningEffort: s.ReasoningEffort, RolloutPath: s.RolloutPath,
	}, nil
}

// startError tells a fault in the configuration from any other.
func startError(doing string, err error) error {
	var bad *engine.ConfigError
	if errors.As(err, &bad) {
		return refused("error deriving config: %v", bad.Err)
	}
	return failed(doing, err)
}

func (ss *session) resumeConversation(ctx context.Context, r engine.Resumer, p protocol.ResumeConversationParams) (*protocol.ResumeConversationResult, error) {
	if err := required("/path", p.Path); err != nil {
		return nil, err
	}
	cfg, err := configOf("/overrides", p.Overrides)
	if err != nil {
		return nil, err
	}
	c, err := ss.resume(ctx, r, p.Path, message{ss}, cfg)
	if err != nil {
		return nil, startError("error resuming conversation", err)
	}
	s := c.host.info()
	ss.sendEvent("codex/event", nil, protocol.Event{Msg: s})
	return &protocol.ResumeConversationResult{ConversationID: c.ID(), Model: s.Model, InitialMessages: s.InitialMessages}, nil
}

func (ss *session) archiveConversation(ctx context.Context, l engine.Library, p protocol.ArchiveConversationParams) error {
	if err := required("/conversationId", p.ConversationID); err != nil {
		return err
	}
	if err := required("/rolloutPath", p.RolloutPath); err != nil {
		return err
	}
	if err := l.Archive(ctx, p); err != nil {
		return answerFor("failed to archive conversation", err)
	}
	c := ss.conversations.take(p.ConversationID)
	if c == nil {
		return nil
	}
	if _, err := c.interrupt(ctx); err != nil {
		return failed("failed to archive conversation", err)
	}
	if err := c.end(ctx); err != nil {
		return failed("failed to archive conversation", err)
	}
	return nil
}

func (ss *session) addListener(_ context.Context, p protocol.AddConversationListenerParams) (*protocol.AddConversationListenerResult, error) {
	c, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	id, err := c.host.listen()
	if err != nil {
		return nil, err
	}
	return &protocol.AddConversationListenerResult{SubscriptionID: id}, nil
}

func (ss *session) removeListener(_ context.Context, p protocol.RemoveConversationListenerParams) (empty, error) {
	if err := required("/subscriptionId", p.SubscriptionID); err != nil {
		return empty{}, err
	}
	if !ss.conversations.unlisten(p.SubscriptionID) {
		return empty{}, refused("subscription not found: %s", p.SubscriptionID)
	}
	return empty{}, nil
}

// find is the open conversation that a method names.
func (ss *session) find(id string) (*conversation, error) {
	if err := required("/conversationId", id); err != nil {
		return nil, err
	}
	c := ss.conversations.find(id)
	if c == nil {
		return nil, refused("conversation not found: %s", id)
	}
	return c, nil
}

// start begins a conversation whose first events go to a.
func (ss *session) start(ctx context.Context, a asker, cfg protocol.Config) (*conversation, error) {
	h := &host{session: ss, asker: a}
	ec, err := ss.server.engine.Start(ctx, cfg, h)
	if err != nil {
		return nil, err
	}
	return ss.open(ec, h)
}

// resume goes on with the conversation of a rollout. One that was open before
// and has nothing to do gives way.
func (ss *session) resume(ctx context.Context, r engine.Resumer, path string, a asker, cfg protocol.Config) (*conversation, error) {
	h := &host{session: ss, asker: a}
	ec, err := r.Resume(ctx, path, cfg, h)
	if err != nil {
		return nil, err
	}
	if old := ss.conversations.find(ec.ID()); old != nil {
		if old.busy() {
			return nil, errors.Join(&engine.RefusedError{Err: errors.New("a turn of this conversation is running")}, ec.Close())
		}
		ss.conversations.take(ec.ID())
		if err := old.shut(ctx); err != nil {
			return nil, errors.Join(err, ec.Close())
		}
	}
	return ss.open(ec, h)
}

func (ss *session) open(ec engine.Conversation, h *host) (*conversation, error) {
	c := &conversation{Conversation: ec, host: h}
	if err := ss.conversations.add(c); err != nil {
		return nil, errors.Join(err, ec.Close())
	}
	return c, nil
}
