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

// userMessages returns the indices of the user's own messages in the history, from an index on.
func (h *history) userMessages(from int) (all []int) {
	for i := from; i < len(h.items); i++ {
		if m, ok := h.items[i].(protocol.MessageItem); ok && m.Role == "user" && fromUser(m) && !ownMessage(model.Text(m.Content)) {
			all = append(all, i)
		}
	}
	return all
}
