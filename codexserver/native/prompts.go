package native

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// prompts are what a model reads besides the history. A caller can add two: developer
// instructions, which are a message with the role developer at the beginning of the history,
// and the prompt of a compaction. The rollout keeps both for resumed conversations.
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
	text := strings.ToValidUTF8(p.developer, "\uFFFD")
	return []protocol.ResponseItem{protocol.MessageItem{
		Role: "developer", Content: []protocol.ContentItem{{Type: "input_text", Text: text}},
	}}
}

// summaryPrompt returns the prompt of a compaction.
func (p *prompts) summaryPrompt() string {
	if strings.TrimSpace(p.compact) == "" {
		return builtinCompactPrompt
	}
	return strings.ToValidUTF8(p.compact, "\uFFFD")
}

// keepPrompts puts both prompts into the first line of a rollout.
func (p *prompts) keepPrompts(meta *protocol.SessionMeta) {
	meta.DeveloperInstructions, meta.CompactPrompt = p.developer, p.compact
}

// restorePrompts takes both prompts from a rollout, unless the call that resumes it
// passes its own.
func (p *prompts) restorePrompts(old *protocol.SessionMeta, call *protocol.Config) {
	if call.CompactPrompt == nil && !chooses(call, "compact_prompt") {
		p.compact = old.CompactPrompt
	}
	if call.DeveloperInstructions == nil && !chooses(call, "developer_instructions") {
		p.developer = old.DeveloperInstructions
	}
}

// addDeveloper adds developer instructions to a resumed history that lacks them, because
// the call that resumed it passed new ones.
func (c *conversation) addDeveloper() {
	items := c.prompts.developerMessage()
	if len(items) == 0 || slices.ContainsFunc(c.history.items, func(item protocol.ResponseItem) bool {
		m, ok := item.(protocol.MessageItem)
		return ok && m.Role == "developer" && contentText(m) == contentText(items[0].(protocol.MessageItem))
	}) {
		return
	}
	c.record(items...)
}
