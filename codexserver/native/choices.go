package native

import (
	"errors"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// addRoots adds the folders that a call names to the configuration's writable roots.
func (e *Engine) addRoots(cfg *config.Config, call *protocol.Config) error {
	if len(call.WritableRoots) == 0 {
		return nil
	}
	if cfg.SandboxMode != protocol.SandboxWorkspaceWrite {
		return fmt.Errorf("argument /config/sandbox_workspace_write/writable_roots: it needs the sandbox %s, and the sandbox is %s", protocol.SandboxWorkspaceWrite, cfg.SandboxMode)
	}
	paths, err := e.newSandbox(cfg).Resolve(cfg.Cwd, call.WritableRoots)
	var root *sandbox.RootError
	if errors.As(err, &root) {
		return fmt.Errorf("argument /config/sandbox_workspace_write/writable_roots/%d: %w", root.Index, err)
	}
	if err != nil {
		return fmt.Errorf("argument /config/sandbox_workspace_write/writable_roots: %w", err)
	}
	roots := slices.Clone(cfg.SandboxWorkspaceWrite.WritableRoots)
	for _, path := range paths {
		if !slices.Contains(roots, path) {
			roots = append(roots, path)
		}
	}
	cfg.SandboxWorkspaceWrite.WritableRoots = roots
	return nil
}

// restoreChoices restores the effort and the web search that earlier calls chose, from
// the rollout, unless the call that resumes the conversation chooses them itself. The
// writable folders are part of the sandbox policy, which restorePolicies restores.
func (c *conversation) restoreChoices(old *rollout.Rollout, call *protocol.Config, bounded bool) {
	c.call.effort = call.Effort != ""
	if last := old.Context; last != nil && !c.call.effort && call.Profile == "" && !chooses(call, "model_reasoning_effort", "profile") &&
		last.Model == c.now.Model && last.Effort != "" && last.Effort != c.now.Effort {
		c.now.Effort, c.call.effort = last.Effort, true
	}
	before := old.Meta.WebSearch
	if call.WebSearch == nil && before != nil && (!*before || !bounded) && !chooses(call, "tools", "web_search") {
		_ = c.cfg.SearchWeb(*before) // it stays off when the configuration no longer allows it
	}
}
