package native

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A caller can add two prompts to a conversation: developer instructions, which are a
// message with the role developer at the beginning of the history, and the prompt of a
// compaction. The rollout keeps both for resumed conversations.

// developerMessage returns the developer instructions as one item, nil without any.
func (c *conversation) developerMessage() []protocol.ResponseItem {
	if c.developer == "" {
		return nil
	}
	text := strings.ToValidUTF8(c.developer, "\uFFFD")
	return []protocol.ResponseItem{protocol.MessageItem{
		Role: "developer", Content: []protocol.ContentItem{{Type: "input_text", Text: text}},
	}}
}

// summaryPrompt returns the prompt of a compaction.
func (c *conversation) summaryPrompt() string {
	if strings.TrimSpace(c.compactPrompt) == "" {
		return builtinCompactPrompt
	}
	return strings.ToValidUTF8(c.compactPrompt, "\uFFFD")
}

// keepPrompts puts both prompts into the first line of a rollout.
func (c *conversation) keepPrompts(meta *protocol.SessionMeta) {
	meta.DeveloperInstructions, meta.CompactPrompt = c.developer, c.compactPrompt
}

// restorePrompts takes both prompts from a rollout, unless the call that resumes it
// passes its own.
func (c *conversation) restorePrompts(old *protocol.SessionMeta, call *protocol.Config) {
	if call.CompactPrompt == nil && !chooses(call, "compact_prompt") {
		c.compactPrompt = old.CompactPrompt
	}
	if call.DeveloperInstructions == nil && !chooses(call, "developer_instructions") {
		c.developer = old.DeveloperInstructions
	}
}

// addDeveloper adds developer instructions to a resumed history that lacks them, because
// the call that resumed it passed new ones.
func (c *conversation) addDeveloper() {
	items := c.developerMessage()
	if len(items) == 0 || slices.ContainsFunc(c.history, func(item protocol.ResponseItem) bool {
		m, ok := item.(protocol.MessageItem)
		return ok && m.Role == "developer" && contentText(m) == contentText(items[0].(protocol.MessageItem))
	}) {
		return
	}
	c.record(items...)
}
