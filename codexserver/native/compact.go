package native

import (
	"context"
	_ "embed" // for the prompt
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

//go:embed prompts/compact.md
var builtinCompactPrompt string

const (
	// maxQuoted bounds the user's own words after a compaction, in bytes.
	maxQuoted = 64 << 10
	// bytesPerToken estimates tokens for providers that do not count them.
	bytesPerToken = 4
)

// compactLimit returns the number of tokens at which a summary replaces the history; 0
// means never.
func (c *conversation) compactLimit() int64 {
	if c.cfg.AutoCompactTokenLimit > 0 {
		return c.cfg.AutoCompactTokenLimit
	}
	if window := c.contextWindow(); window != nil {
		return *window / 10 * 9
	}
	return 0
}

// size returns the tokens of the history: those that the provider counted, and an estimate
// of what the model has not read. A history to which the model has added nothing counts as
// 0, since it cannot be made smaller.
func (c *conversation) size() int64 {
	last, tokens := len(c.history), int64(0)
	for last > 0 && !byModel(c.history[last-1]) {
		last--
		tokens += estimate(c.history[last])
	}
	if c.usage != nil {
		return c.usage.LastTokenUsage.TotalTokens + tokens
	}
	if last == 0 {
		return 0
	}
	for _, item := range c.history[:last] {
		tokens += estimate(item)
	}
	return tokens
}

// full reports whether the history needs a compaction.
func (c *conversation) full() bool {
	limit := c.compactLimit()
	return limit > 0 && c.size() >= limit
}

// makeRoom compacts a full history. It fails when the history is full again after the
// next response, since another compaction would not help.
func (t *turn) makeRoom(ctx context.Context) error {
	if t.size() >= smallHistory {
		t.learnWindow(ctx)
	}
	if !t.full() {
		t.compacted = false
		return nil
	}
	if t.compacted {
		return fmt.Errorf("the conversation has more than %d tokens even after it was summarised; begin a new one", t.compactLimit())
	}
	return t.compact(ctx)
}

// compact replaces the history by its opening, the user's own words and a summary that
// the model writes.
func (t *turn) compact(ctx context.Context) error {
	t.compacted = true
	submission := fmt.Sprintf("auto-compact-%d", t.compactions)
	t.compactions++
	summary, err := t.summarise(ctx, submission)
	if err != nil {
		return fmt.Errorf("summarising the conversation: %w", err)
	}
	said := userTexts(t.history)
	t.history = append(t.opening(), bridge(said, summary))
	t.usage = t.usageAfterCompaction()
	entry := protocol.Compacted{Message: summary}
	for _, item := range t.history {
		raw, err := protocol.AppendItem(nil, item)
		if err != nil {
			return err
		}
		entry.ReplacementHistory = append(entry.ReplacementHistory, json.RawMessage(raw))
	}
	t.checkWrite(t.file.Compacted(entry))
	t.emitAs(submission, protocol.AgentMessage{Message: "The conversation was summarised to make room."})
	return nil
}

// usageAfterCompaction returns the usage with its totals, but without the size of the
// last request.
func (c *conversation) usageAfterCompaction() *protocol.TokenUsageInfo {
	if c.usage == nil {
		return nil
	}
	info := *c.usage
	info.LastTokenUsage = protocol.TokenUsage{}
	return &info
}

// summarise asks the model for the summary. It drops the older half of the history until
// the request fits.
func (t *turn) summarise(ctx context.Context, submission string) (string, error) {
	items := t.history
	for {
		req := &model.Request{
			Model:          t.now.Model,
			Instructions:   t.instructions,
			Items:          append(slices.Clip(items), userMessage(t.summaryPrompt())),
			Reasoning:      t.reasoning(),
			ConversationID: t.id,
		}
		resp, err := t.stream(ctx, req, func(e model.Event) {
			if e.Type == model.RateLimitsRead {
				t.limits = e.RateLimits
				t.emitAs(submission, protocol.TokenCount{Info: t.usage, RateLimits: t.limits})
			}
		})
		if errors.Is(err, model.ErrContextWindow) && len(items) > 1 {
			items = valid(items[(len(items)+1)/2:])
			continue
		}
		if err != nil {
			return "", err
		}
		if resp.Usage != nil {
			t.spend(*resp.Usage)
		}
		t.emitAs(submission, protocol.TokenCount{Info: t.usage, RateLimits: t.limits})
		summary := lastMessage(resp.Items)
		if summary == nil {
			return "", errors.New("the model returned an empty summary")
		}
		return *summary, nil
	}
}

// opening returns the items with which every history begins.
func (c *conversation) opening() []protocol.ResponseItem {
	items := c.developerMessage()
	if c.rules != "" {
		items = append(items, instructionsMessage(c.rules))
	}
	if m, ok := environmentMessage(c.now, nil, c.engine.shell()); ok {
		items = append(items, m)
	}
	return items
}

const (
	bridgeHead    = "The conversation so far was too long and has been replaced by a summary.\n\nWhat the user wrote, oldest first:\n\n"
	bridgeMiddle  = "\n\nThe summary, written by the model that worked on it; commands and changes in it have been done:\n\n"
	bridgeSkipped = "[older messages left out]"
	bridgeBetween = "\n\n---\n\n"
)

// bridge returns the message that replaces the history at a compaction.
func bridge(said []string, summary string) protocol.MessageItem {
	return userMessage(bridgeHead + quote(said) + bridgeMiddle + summary)
}

// quote joins the newest texts that fit into maxQuoted.
func quote(said []string) string {
	left := maxQuoted
	var kept []string
	for _, text := range slices.Backward(said) {
		if left -= len(text); left < 0 {
			kept = append(kept, bridgeSkipped)
			break
		}
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	return strings.Join(kept, bridgeBetween)
}

// userTexts returns the user's own words in a history, including those that earlier
// compactions quoted.
func userTexts(history []protocol.ResponseItem) []string {
	var said []string
	for _, item := range history {
		m, ok := item.(protocol.MessageItem)
		if !ok || m.Role != "user" {
			continue
		}
		text := contentText(m)
		switch {
		case text == "" || ownMessage(text):
		case strings.HasPrefix(text, bridgeHead):
			quoted, _, _ := strings.Cut(text[len(bridgeHead):], bridgeMiddle)
			said = append(said, strings.Split(quoted, bridgeBetween)...)
		default:
			said = append(said, text)
		}
	}
	return said
}

// ownMessage reports whether the engine wrote a message of the role user.
func ownMessage(text string) bool {
	return strings.HasPrefix(text, "<user_instructions>") || strings.HasPrefix(text, "<environment_context>") || strings.HasPrefix(text, correctionHead) || strings.HasPrefix(text, resumeHead)
}

// valid makes a valid history of items that may lack their beginning or end. It answers a
// call without an answer and drops an answer without a call.
func valid(items []protocol.ResponseItem) []protocol.ResponseItem {
	answered := map[string]bool{}
	for _, item := range items {
		if id, ok := answerOf(item); ok {
			answered[id] = true
		}
	}
	called := map[string]bool{}
	out := make([]protocol.ResponseItem, 0, len(items))
	var missing []protocol.ResponseItem // answers to the calls of the current response
	for _, item := range items {
		call, isCall := callOf(item)
		id, isAnswer := answerOf(item)
		if !isCall && len(missing) > 0 {
			out = append(out, missing...)
			missing = nil
		}
		switch {
		case isCall:
			called[call.ID] = true
			if !answered[call.ID] {
				missing = append(missing, answer(call, unfinished))
			}
		case isAnswer && !called[id]:
			continue
		}
		out = append(out, item)
	}
	return append(out, missing...)
}

// answerOf returns the id of the call that an item answers.
func answerOf(item protocol.ResponseItem) (callID string, ok bool) {
	switch item := item.(type) {
	case protocol.FunctionCallOutputItem:
		return item.CallID, true
	case protocol.CustomToolCallOutputItem:
		return item.CallID, true
	}
	return "", false
}
