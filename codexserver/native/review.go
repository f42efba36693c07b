package native

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// readOnly makes a configuration read-only: without MCP servers and web search.
func readOnly(cfg *config.Config) {
	cfg.SandboxMode, cfg.ApprovalPolicy = protocol.SandboxReadOnly, protocol.ApprovalNever
	cfg.SandboxWorkspaceWrite = config.WorkspaceWrite{} // nor the network of a profile
	cfg.MCPServers = nil
	cfg.Tools.WebSearch = false
	cfg.OnlyReads = true
}

// confine restores the policies of a conversation that is read-only after a
// rollout or a turn has set others.
func (c *conversation) confine() {
	if c.cfg.OnlyReads {
		readOnly(c.cfg)
		c.now.ApprovalPolicy, c.now.SandboxPolicy = c.cfg.ApprovalPolicy, c.cfg.Sandbox()
	}
}
