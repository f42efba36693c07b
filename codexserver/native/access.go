package native

import (
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// withoutCall returns the configuration without what a call chooses.
func (c *conversation) withoutCall() (*config.Config, error) {
	own, err := c.engine.config(protocol.Config{Cwd: c.cfg.Cwd})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return own, nil
}

// judge determines what a new conversation may do because of its call. The configuration is read again only for a
// call that may make something wider: in no sandbox but full access do the mode and the policy so.
func (c *conversation) judge(call *protocol.Config) (err error) {
	own := c.cfg
	full := c.now.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess &&
		(call.Sandbox != "" || call.ApprovalPolicy != "")
	if full || call.Profile != "" || call.WebSearch != nil || len(call.Overrides) > 0 {
		if own, err = c.withoutCall(); err != nil {
			return err
		}
	}
	c.access = accessOf(c.now, c.cfg, own)
	return nil
}

// accessOf compares what a conversation may do with what its configuration own gives.
func accessOf(now protocol.TurnContext, cfg, own *config.Config) protocol.Access {
	writable := *own // its folders and network count in each mode
	writable.SandboxMode = protocol.SandboxWorkspaceWrite
	base := grantOf(own)
	base.Policy, base.Sandbox = own.ApprovalPolicy, writable.Sandbox()
	base.Named = box.Writable(base.Sandbox, "", cfg.Environ)
	base.Sandbox.Mode = own.SandboxMode
	has := grantOf(cfg)
	has.Cwd, has.Policy, has.Sandbox = now.Cwd, now.ApprovalPolicy, now.SandboxPolicy
	return has.Beyond(&base, box.Writable(has.Sandbox, has.Cwd, cfg.Environ))
}

// grantOf returns what a configuration gives besides the policies.
func grantOf(cfg *config.Config) decide.Grant {
	g := decide.Grant{Provider: cfg.ModelProvider, Address: cfg.Provider().BaseURL, Endpoint: cfg.Provider().BaseURL}
	if cfg.Tools.WebSearch {
		g.Search = "on"
	}
	return g
}
