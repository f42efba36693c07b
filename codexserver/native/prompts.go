package native

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// prompts are what a model reads besides the history. A caller can add two: developer
// instructions, which are a message with the role developer at the beginning of the history,
// and the prompt of a compaction.
type prompts struct {
	instructions string
	developer    string // the developer instructions, "" for none
	compact      string // asks for a summary; "" means the built-in prompt
	rules        string // the text of the AGENTS.md files
}

// developerMessage returns the developer instructions as one item, nil without any.
func (p *prompts) developerMessage() []protocol.ResponseItem {
	if p.developer == "" {
		return nil
	}
	return []protocol.ResponseItem{message("developer", strings.ToValidUTF8(p.developer, "\uFFFD"))}
}

// summaryPrompt returns the prompt of a compaction.
func (p *prompts) summaryPrompt() string {
	if strings.TrimSpace(p.compact) == "" {
		return builtinCompactPrompt
	}
	return strings.ToValidUTF8(p.compact, "\uFFFD")
}

// addDeveloper adds developer instructions to a resumed history that lacks them, because
// the call that resumed it passed new ones.
func (c *conversation) addDeveloper() {
	items := c.prompts.developerMessage()
	if len(items) == 0 || slices.ContainsFunc(c.history.items, func(item protocol.ResponseItem) bool {
		m, ok := item.(protocol.MessageItem)
		return ok && m.Role == "developer" &&
			model.Text(m.Content) == model.Text(items[0].(protocol.MessageItem).Content)
	}) {
		return
	}
	c.record(items...)
}
