package native

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// EndLimits lets the limits of a conversation's providers be over.
func EndLimits(c engine.Conversation) {
	for i := range c.(*conversation).providers.list {
		c.(*conversation).providers.list[i].until = time.Time{}
	}
}
