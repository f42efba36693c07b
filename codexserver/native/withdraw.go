package native

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// cut ends the history before the item at an index, which is one of n messages of the user
// that are removed. The rollout keeps the lines of what is removed. Codex shows it from the
// event, older versions from the history, without the messages.
func (c *conversation) cut(at, n int) error {
	raw, err := json.Marshal(struct {
		Type  string `json:"type"`
		Turns int    `json:"num_turns"`
	}{rolledBack, n})
	if err != nil {
		return err
	}
	c.checkWrite(c.saved.file.Event(protocol.RawEvent{Type: rolledBack, Raw: raw}))
	if slices.ContainsFunc(c.history.items[at:], isEnvironment) {
		c.history.sent = protocol.TurnContext{} // the next turn sends it again
	}
	if err := c.replaceHistory("Messages that did not fit the context window were taken back.", c.history.items[:at:at]); err != nil {
		return err
	}
	c.addDeveloper()
	return nil
}

// rolledBack is the type of Codex's event in a rollout for turns that were taken back.
const rolledBack = "thread_rolled_back"

// isEnvironment reports whether an item is the message of [environmentMessage].
func isEnvironment(item protocol.ResponseItem) bool {
	m, ok := item.(protocol.MessageItem)
	return ok && m.Role == "user" && strings.HasPrefix(model.Text(m.Content), "<environment_context>")
}

// fromUser reports whether an item is a message of the user, or one that the engine adds to
// those. A summary is not, and neither is the image of a tool.
func fromUser(item protocol.ResponseItem) bool {
	m, ok := item.(protocol.MessageItem)
	return ok && m.Role != "assistant" && !strings.HasPrefix(model.Text(m.Content), bridgeHead) &&
		(len(m.Content) != 1 || m.Content[0].Type != "input_image")
}
