package native

import (
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// history is what the model reads of the conversation so far. The rollout has it, too.
type history struct {
	items []protocol.ResponseItem
	sent  protocol.TurnContext // what they say of the policies and the folder
}

// unread returns the index from which on the history has only messages that the model has
// not read.
func (h *history) unread() int {
	i := len(h.items)
	for i > 0 && fromUser(h.items[i-1]) {
		i--
	}
	return i
}

// said returns the user's own messages in the history from an index on, and the others there.
func (h *history) said(from int) (own, others []protocol.ResponseItem) {
	for _, item := range h.items[from:] {
		if m, ok := item.(protocol.MessageItem); ok && m.Role == "user" && fromUser(m) &&
			!ownMessage(model.Text(m.Content)) {
			own = append(own, item)
		} else {
			others = append(others, item)
		}
	}
	return own, others
}
