package native

import "github.com/codexmcp/codexmcp/codexserver/engine"

// UserAgent is userAgent.
func (e *Engine) UserAgent() string { return e.userAgent() }

// PutAway does what a conversation does that was not used for Limits.Idle, and reports
// whether its history is in its rollout alone.
func PutAway(c engine.Conversation) bool {
	c.(*conversation).putAway()
	return Away(c)
}

// Away reports whether a conversation's history is in its rollout alone.
func Away(c engine.Conversation) bool {
	it := c.(*conversation)
	it.use.Lock()
	defer it.use.Unlock()
	return it.away && it.history == nil
}
