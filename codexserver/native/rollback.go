package native

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// takeBack removes the user's last n messages, and what followed them, from the history.
func (c *conversation) takeBack(n int) error {
	prompts := c.userMessages(0)
	if n > len(prompts) {
		return &engine.RefusedError{Err: fmt.Errorf("rollback: %d prompts cannot be taken back, since the history has %d: older ones do not exist, or a summary has replaced them", n, len(prompts))}
	}
	return c.cut(prompts[len(prompts)-n], n)
}

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
	c.checkWrite(c.file.Event(protocol.RawEvent{Type: rolledBack, Raw: raw}))
	if slices.ContainsFunc(c.history[at:], isEnvironment) {
		c.sent = protocol.TurnContext{} // the next turn sends it again
	}
	if err := c.replaceHistory(tookBack(n), c.history[:at:at]); err != nil {
		return err
	}
	c.addDeveloper()
	return nil
}

// rolledBack is the type of Codex's event in a rollout for turns that were taken back.
const rolledBack = "thread_rolled_back"

func tookBack(n int) string {
	if n == 1 {
		return "The last prompt was taken back, with what followed it. Files stay as they are."
	}
	return fmt.Sprintf("The last %d prompts were taken back, with what followed them. Files stay as they are.", n)
}

// shorten summarises the history if the input asks for that, and returns what has become of
// the history in words; "" for a turn that does not shorten it.
func (t *turn) shorten(ctx context.Context, in protocol.TurnInput) (string, error) {
	var words []string
	if in.Rollback > 0 {
		words = append(words, tookBack(in.Rollback))
	}
	switch {
	case !in.Compact:
	case !slices.ContainsFunc(t.history, byModel):
		words = append(words, "There is nothing to summarise.")
	default:
		t.learnWindow(ctx)
		if err := t.compact(ctx); err != nil {
			return "", err
		}
		words = append(words, "The conversation was summarised.")
	}
	return strings.Join(words, " "), nil
}

// unread returns the index from which on the history has only messages that the model has
// not read.
func (m *memory) unread() int {
	i := len(m.history)
	for i > 0 && fromUser(m.history[i-1]) {
		i--
	}
	return i
}

// userMessages returns the indices of the user's own messages in the history, from an index on.
func (m *memory) userMessages(from int) (all []int) {
	for i := from; i < len(m.history); i++ {
		if m, ok := m.history[i].(protocol.MessageItem); ok && m.Role == "user" && fromUser(m) && !ownMessage(contentText(m)) {
			all = append(all, i)
		}
	}
	return all
}

// isEnvironment reports whether an item is the message of [environmentMessage].
func isEnvironment(item protocol.ResponseItem) bool {
	m, ok := item.(protocol.MessageItem)
	return ok && m.Role == "user" && strings.HasPrefix(contentText(m), "<environment_context>")
}

// fromUser reports whether an item is a message of the user, or one that the engine adds to
// those. A summary is not, and neither is the image of a tool.
func fromUser(item protocol.ResponseItem) bool {
	m, ok := item.(protocol.MessageItem)
	return ok && m.Role != "assistant" && !strings.HasPrefix(contentText(m), bridgeHead) &&
		(len(m.Content) != 1 || m.Content[0].Type != "input_image")
}
