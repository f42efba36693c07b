package native

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Review implements [engine.Reviewer]. The turn has tools of its own: what was
// approved in the conversation does not count, and what it runs under stays as it is.
func (c *conversation) Review(ctx context.Context, r protocol.Review) error {
	o := c.engine.toolOptions(c.cfg, &c.left)
	o.PatchTool, o.PlanTool = false, false
	o.Strict, o.ReadOnly = true, true
	t := &turn{conversation: c, box: tool.New(o), reviews: true}
	return c.runTurn(ctx, protocol.TurnInput{Items: protocol.TextInput(r.Prompt)}, t)
}

// readOnly leaves out of a configuration what commands that only read do not need.
func readOnly(cfg *config.Config) {
	cfg.SandboxMode, cfg.ApprovalPolicy = protocol.SandboxReadOnly, protocol.ApprovalNever
	cfg.MCPServers = nil
	cfg.Tools.WebSearch = false
}

// confine takes back what a turn or a rollout allows a read-only conversation.
func (c *conversation) confine() {
	if c.readOnly {
		readOnly(c.cfg)
		c.now.ApprovalPolicy, c.now.SandboxPolicy = c.cfg.ApprovalPolicy, c.cfg.Sandbox()
	}
}
