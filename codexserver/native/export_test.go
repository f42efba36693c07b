package native

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/web"
)

// UserAgent is userAgent.
func (e *Engine) UserAgent() string { return e.userAgent() }

// ReadPages lets models read pages of the web with a client of a test.
func (e *Engine) ReadPages(c *web.Client) { e.web = c }

// EndLimits lets the limits of a conversation's providers be over.
func EndLimits(c engine.Conversation) {
	for i := range c.(*conversation).providers.list {
		c.(*conversation).providers.list[i].until = time.Time{}
	}
}
