package native

import (
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Access implements [engine.Extended].
func (c *conversation) Access() protocol.Access { return c.call.access }

// withoutCall returns the configuration without what a call chooses.
func (c *conversation) withoutCall() (*config.Config, error) {
	own, err := c.engine.config(protocol.Config{Cwd: c.cfg.Cwd})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	return own, nil
}

// judge determines what a new conversation may do because of its call.
func (c *conversation) judge(call *protocol.Config) (err error) {
	own := c.cfg
	full := c.now.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess // without it the arguments of the mode and the policy make nothing wider
	if full && (call.Sandbox != "" || call.ApprovalPolicy != "") || call.Profile != "" || call.WebSearch != nil || len(call.Overrides) > 0 {
		if own, err = c.withoutCall(); err != nil {
			return err
		}
	}
	c.call.access = accessOf(c.now, c.cfg, own)
	return nil
}

// restore sets what the last turn of a resumed conversation had, as far as the call keeps it.
func (c *conversation) restore(old *rollout.Rollout, call *protocol.Config) error {
	own, err := c.withoutCall()
	if err != nil {
		return err
	}
	policies, searches := c.now, c.cfg.Tools.WebSearch
	c.restorePolicies(old.Context, call, false)
	c.restoreChoices(old, call, false)
	c.call.access = accessOf(c.now, c.cfg, own)
	if c.call.access.IsZero() || call.Keep != nil && call.Keep(c.call.access) {
		return nil
	}
	c.now, c.cfg.Tools.WebSearch = policies, searches
	c.restorePolicies(old.Context, call, true)
	c.restoreChoices(old, call, true)
	c.call.access = accessOf(c.now, c.cfg, own)
	return nil
}

// accessOf compares what a conversation may do with what its configuration own gives.
func accessOf(now protocol.TurnContext, cfg, own *config.Config) protocol.Access {
	policy := now.SandboxPolicy
	a := protocol.Access{Folder: real(now.Cwd)}
	if width(policy.Mode) > width(own.SandboxMode) || policy.Mode == protocol.SandboxWorkspaceWrite {
		a.Mode = policy.Mode
	}
	if policy.Mode == protocol.SandboxDangerFullAccess {
		looser := own.ApprovalPolicy == protocol.ApprovalUntrusted && now.ApprovalPolicy != protocol.ApprovalUntrusted
		if looser || a.Mode != "" {
			a.Policy = now.ApprovalPolicy
		}
	}
	if policy.Mode == protocol.SandboxWorkspaceWrite && own.SandboxMode != protocol.SandboxDangerFullAccess {
		given := own.SandboxWorkspaceWrite
		a.Network = policy.NetworkAccess && !given.NetworkAccess
		a.Roots = further(policy, cfg, given)
	}
	a.WebSearch = cfg.Tools.WebSearch && !own.Tools.WebSearch
	if to, from := cfg.Provider(), own.Provider(); cfg.ModelProvider != own.ModelProvider || to.BaseURL != from.BaseURL {
		a.Provider = cfg.ModelProvider + " at " + to.BaseURL
	}
	return a
}

// further returns the folders besides the working folder that commands can write, and that the
// configuration does not name.
func further(policy protocol.SandboxPolicy, cfg *config.Config, given config.WorkspaceWrite) []string {
	own := protocol.SandboxPolicy{
		Mode: policy.Mode, WritableRoots: given.WritableRoots,
		ExcludeSlashTmp: given.ExcludeSlashTmp, ExcludeTmpdirEnvVar: given.ExcludeTmpdirEnvVar,
	}
	named := map[string]bool{real(cfg.Cwd): true}
	for _, root := range sandbox.AskedRoots(own, cfg.Cwd, cfg.Environ) {
		named[real(root)] = true
	}
	var roots []string
	for _, root := range sandbox.AskedRoots(policy, cfg.Cwd, cfg.Environ) {
		if root = real(root); !named[root] {
			roots = append(roots, root)
		}
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// real returns a path without symbolic links, or the path itself if it leads nowhere.
func real(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
