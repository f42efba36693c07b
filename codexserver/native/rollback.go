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
	prompts := c.history.userMessages(0)
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
	c.checkWrite(c.saved.file.Event(protocol.RawEvent{Type: rolledBack, Raw: raw}))
	if slices.ContainsFunc(c.history.items[at:], isEnvironment) {
		c.history.sent = protocol.TurnContext{} // the next turn sends it again
	}
	if err := c.replaceHistory(tookBack(n), c.history.items[:at:at]); err != nil {
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
	case !slices.ContainsFunc(t.conv.history.items, byModel):
		words = append(words, "There is nothing to summarise.")
	default:
		t.conv.learnWindow(ctx)
		if err := t.compact(ctx); err != nil {
			return "", err
		}
		words = append(words, "The conversation was summarised.")
	}
	return strings.Join(words, " "), nil
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
