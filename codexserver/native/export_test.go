package native

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/web"
)

// UserAgent is userAgent.
func (e *Engine) UserAgent() string { return e.userAgent() }

// Unload does what a conversation does that was not used for Limits.Idle, and reports
// whether its history is in its rollout alone.
func Unload(c engine.Conversation) bool {
	c.(*conversation).unload()
	return Unloaded(c)
}

// Unloaded reports whether a conversation's history is in its rollout alone.
func Unloaded(c engine.Conversation) bool {
	it := c.(*conversation)
	it.use.Lock()
	defer it.use.Unlock()
	return it.history.unloaded && it.history.items == nil
}

// ReadPages lets models read pages of the web with a client of a test.
func (e *Engine) ReadPages(c *web.Client) { e.web = c }

// EndLimits lets the limits of a conversation's providers be over.
func EndLimits(c engine.Conversation) {
	for i := range c.(*conversation).providers.list {
		c.(*conversation).providers.list[i].until = time.Time{}
	}
}
