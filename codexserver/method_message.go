package codexserver

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func (ss *session) addMessageMethods(m *jsonrpc.Mux) {
	jsonrpc.Handle(m, "sendUserMessage", ss.sendUserMessage)
	jsonrpc.Handle(m, "sendUserTurn", ss.sendUserTurn)
	jsonrpc.Handle(m, "interruptConversation", ss.interruptConversation)
}

func (ss *session) sendUserMessage(_ context.Context, p protocol.SendUserMessageParams) (empty, error) {
	c, err := ss.find(p.ConversationID)
	if err != nil {
		return empty{}, err
	}
	if p.Items == nil {
		return empty{}, invalid("/items", "missing")
	}
	ss.submit(c, protocol.TurnInput{Items: p.Items})
	return empty{}, nil
}

func (ss *session) sendUserTurn(_ context.Context, p protocol.SendUserTurnParams) (empty, error) {
	c, err := ss.find(p.ConversationID)
	if err != nil {
		return empty{}, err
	}
	if err := checkTurn(&p); err != nil {
		return empty{}, err
	}
	ss.submit(c, protocol.TurnInput{Items: p.Items, Context: &protocol.TurnContext{
		Cwd: p.Cwd, ApprovalPolicy: p.ApprovalPolicy, SandboxPolicy: p.SandboxPolicy,
		Model: p.Model, Effort: p.Effort, Summary: p.Summary,
	}})
	return empty{}, nil
}

func checkTurn(p *protocol.SendUserTurnParams) error {
	if p.Items == nil {
		return invalid("/items", "missing")
	}
	for _, member := range []struct{ path, value string }{
		{"/cwd", p.Cwd}, {"/approvalPolicy", string(p.ApprovalPolicy)}, {"/sandboxPolicy/mode", string(p.SandboxPolicy.Mode)},
		{"/model", p.Model}, {"/summary", string(p.Summary)},
	} {
		if err := required(member.path, member.value); err != nil {
			return err
		}
	}
	if err := oneOf("/approvalPolicy", p.ApprovalPolicy, protocol.ApprovalPolicies()); err != nil {
		return err
	}
	if err := oneOf("/sandboxPolicy/mode", p.SandboxPolicy.Mode, protocol.SandboxModes()); err != nil {
		return err
	}
	if err := oneOf("/effort", p.Effort, protocol.ReasoningEfforts()); err != nil {
		return err
	}
	return oneOf("/summary", p.Summary, protocol.ReasoningSummaries())
}

// submit runs a turn in its place in line; nobody waits for its end but the
// session's.
func (ss *session) submit(c *conversation, in protocol.TurnInput) {
	p := c.line.join()
	ss.turns.Go(func() {
		if err := c.run(ss.ctx, p, message{ss}, in); err != nil {
			ss.log.Debug("turn", "thread", c.ID(), "error", err)
		}
	})
}

func (ss *session) interruptConversation(ctx context.Context, p protocol.InterruptConversationParams) (*protocol.InterruptConversationResult, error) {
	c, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	ran, err := c.interrupt(ctx)
	switch {
	case err != nil:
		return nil, err
	case !ran:
		return nil, refused("no turn of conversation %s is running", p.ConversationID)
	}
	return &protocol.InterruptConversationResult{AbortReason: protocol.AbortInterrupted}, nil
}
