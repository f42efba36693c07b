package native

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// withdraw leaves items of the history, without n messages of the user. The rollout keeps the lines of what is
// removed. Codex shows it from the event, older versions from the history, without the messages.
func (c *conversation) withdraw(n int, items []protocol.ResponseItem) error {
	const rolledBack = "thread_rolled_back" // Codex's event for turns that were taken back
	raw := fmt.Appendf(nil, `{"type":%q,"num_turns":%d}`, rolledBack, n)
	c.checkWrite(c.saved.file.Event(protocol.RawEvent{Type: rolledBack, Raw: raw}))
	return c.replaceHistory("Messages that did not fit the context window were taken back.", items)
}

// fromUser reports whether an item is a message of the user, or one that the engine adds to
// those. A summary is not, and neither is the image of a tool.
func fromUser(item protocol.ResponseItem) bool {
	m, ok := item.(protocol.MessageItem)
	return ok && m.Role != "assistant" && !strings.HasPrefix(model.Text(m.Content), bridgeHead) &&
		(len(m.Content) != 1 || m.Content[0].Type != "input_image")
}
