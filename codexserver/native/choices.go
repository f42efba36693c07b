package native

import (
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// restoreChoices restores the effort and the web search that earlier calls chose, from
// the rollout, unless the call that resumes the conversation chooses them itself. The
// writable folders are part of the sandbox policy, which restorePolicies restores.
func (c *conversation) restoreChoices(old *rollout.Rollout, call *protocol.Config) {
	c.call.effort = call.Effort != ""
	if last := old.Context; last != nil && !c.call.effort && call.Profile == "" && !chooses(call, "model_reasoning_effort", "profile") &&
		last.Model == c.now.Model && last.Effort != "" && last.Effort != c.now.Effort {
		c.now.Effort, c.call.effort = last.Effort, true
	}
	before := old.Meta.WebSearch
	if call.WebSearch == nil && before != nil && !chooses(call, "tools", "web_search") {
		_ = c.cfg.SearchWeb(*before) // it stays off when the configuration no longer allows it
	}
}
