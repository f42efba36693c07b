package native

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// What the user adds to the conversation's prompts: developer instructions, a
// message with the role developer before everything else in the history, and
// the prompt of a compaction. The rollout keeps both, so that they hold in a
// resumed conversation and after its compactions.

// developerMessage returns the developer instructions as an item, nothing
// without any.
func (c *conversation) developerMessage() []protocol.ResponseItem {
	if c.developer == "" {
		return nil
	}
	text := strings.ToValidUTF8(c.developer, "\uFFFD")
	return []protocol.ResponseItem{protocol.MessageItem{
		Role: "developer", Content: []protocol.ContentItem{{Type: "input_text", Text: text}},
	}}
}

// summaryPrompt returns what the model is asked for in a compaction.
func (c *conversation) summaryPrompt() string {
	if strings.TrimSpace(c.compactPrompt) == "" {
		return builtinCompactPrompt
	}
	return strings.ToValidUTF8(c.compactPrompt, "\uFFFD")
}

// keepPrompts notes both in the first line of a rollout.
func (c *conversation) keepPrompts(meta *protocol.SessionMeta) {
	meta.DeveloperInstructions, meta.CompactPrompt = c.developer, c.compactPrompt
}

// restorePrompts takes both from a rollout, unless the call that resumes it
// chooses others.
func (c *conversation) restorePrompts(old *protocol.SessionMeta, call *protocol.Config) {
	if call.CompactPrompt == nil && !chooses(call, "compact_prompt") {
		c.compactPrompt = old.CompactPrompt
	}
	if call.DeveloperInstructions == nil && !chooses(call, "developer_instructions") {
		c.developer = old.DeveloperInstructions
	}
}

// addDeveloper records developer instructions that the history lacks, because
// the call that resumed the conversation brought them.
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
