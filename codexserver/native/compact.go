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
	"github.com/codexmcp/codexmcp/internal/text"
)

//go:embed prompts/compact.md
var builtinCompactPrompt string

const (
	// maxQuoted bounds the user's own words after a compaction, in bytes.
	maxQuoted = 64 << 10
	// quotedShare and summaryShare are the parts of the context window, one in so many,
	// that these words and the summary may have.
	quotedShare, summaryShare = 8, 4
)

// compactLimit returns the number of tokens at which a summary replaces the history; 0
// means never.
func (c *conversation) compactLimit() int64 {
	if limit := c.provider().cfg.AutoCompactTokenLimit; limit > 0 {
		return limit
	}
	if window := c.contextWindow(); window != nil {
		return *window / 10 * 9
	}
	return 0
}

// size returns the tokens of a history, or of its beginning: those that the provider
// counted, and an estimate of what the model has not read. A history to which the model has
// added nothing counts as 0, since it cannot be made smaller.
func (c *conversation) size(history []protocol.ResponseItem) int64 {
	last, tokens := len(history), int64(0)
	for last > 0 && !byModel(history[last-1]) {
		last--
		tokens += estimate(history[last])
	}
	if last == 0 {
		return 0
	}
	if counted := c.meter.last(); counted > 0 {
		return counted + tokens
	}
	return tokens + estimateAll(history[:last])
}

// full reports whether the history needs a compaction.
func (c *conversation) full() bool {
	limit := c.compactLimit()
	return limit > 0 && c.size(c.history.items) >= limit
}

// makeRoom compacts a full history, before the model reads what is new in it. It fails when
// the history is full again after the next response, since another compaction would not
// help, and when a message fits no request.
func (t *turn) makeRoom(ctx context.Context) error {
	if t.conv.size(t.conv.history.items) >= smallHistory {
		t.conv.learnWindow(ctx)
	}
	switch {
	case !t.conv.full():
		t.compacted = false
	case t.compacted:
		return fmt.Errorf("the conversation has more than %d tokens even after it was summarised. %s",
			t.conv.compactLimit(), adviceRoom)
	default:
		if err := t.compact(ctx); err != nil {
			return err
		}
	}
	if t.hopeless() {
		return model.ErrContextWindow
	}
	return nil
}

// compact replaces the history by its opening, the user's own words and a summary that
// the model writes. The messages that the model has not read follow as they are.
func (t *turn) compact(ctx context.Context) error {
	t.compacted = true
	submission := fmt.Sprintf("auto-compact-%d", t.conv.meter.compactions)
	t.conv.meter.compactions++
	unread := t.conv.history.unread()
	summary, err := t.summarise(ctx, submission, t.conv.history.items[:unread])
	if err != nil {
		return fmt.Errorf("summarising the conversation: %w", err)
	}
	unread = t.conv.history.unread() // another provider reads a shorter history
	said, _ := t.conv.history.said(unread)
	items := append(t.conv.opening(), t.conv.bridge(userTexts(t.conv.history.items[:unread]), summary))
	if err := t.conv.replaceHistory(summary, append(items, said...)); err != nil {
		return err
	}
	t.conv.emitAs(submission, protocol.AgentMessage{Message: "The conversation was summarised to make room."})
	return nil
}

// replaceHistory replaces the history, in memory and in the rollout, where a message says
// why. The size of the last request does not count any more.
func (c *conversation) replaceHistory(message string, items []protocol.ResponseItem) error {
	entry := protocol.Compacted{Message: message}
	for _, item := range c.kept(items...) {
		raw, err := protocol.AppendItem(nil, item)
		if err != nil {
			return err
		}
		entry.ReplacementHistory = append(entry.ReplacementHistory, json.RawMessage(raw))
	}
	c.history.items = items
	c.checkWrite(c.saved.file.Compacted(entry))
	if c.meter.forgetLast() {
		c.checkWrite(c.saved.file.Event(c.meter.report()))
	}
	return nil
}

// noSummary is what the model reads in the second request for a summary, if its first answer was none.
const noSummary = "\n\nYour last answer was no summary. Call no tool. Write only the summary, as plain text."

// summarise asks the model for the summary of a history. While the request does not fit, it
// leaves out more: of long texts their middle, and older items. An answer that is no summary is asked for once more.
func (t *turn) summarise(ctx context.Context, submission string, history []protocol.ResponseItem) (string, error) {
	items, room, prompt := history, estimateAll(history), t.conv.prompts.summaryPrompt()
	if window := t.conv.contextWindow(); window != nil && t.conv.size(history) > *window {
		fixed := estimateText(t.instructions()+prompt) + estimateTools(t.offer())
		room = max(*window-*window/summaryShare-fixed, smallestRoom)
		items = fitting(history, room)
	}
	for again, called := false, false; ; {
		request := func() *model.Request {
			if t.conv.away() {
				items = portable(items)
			}
			return &model.Request{
				Model:        t.conv.provider().cfg.Model,
				Instructions: t.instructions(),
				Items:        append(slices.Clip(items), userMessage(prompt)),
				// providers refuse a history with calls without them, and their cache has them
				Tools:          t.offer(),
				NoCalls:        true,
				Ignored:        called,
				SeveralCalls:   t.conv.engine.fileTools(t.conv.cfg),
				Reasoning:      t.conv.reasoning(),
				ConversationID: t.conv.ID(),
			}
		}
		resp, err := t.stream(ctx, submission, request)
		if errors.Is(err, model.ErrContextWindow) && room/2 >= smallestRoom {
			t.conv.learnWindow(ctx)
			room /= 2
			items = fitting(history, room)
			continue
		}
		if err != nil {
			return "", err
		}
		t.conv.emitAs(submission, t.conv.meter.report())
		summary, why := t.summaryOf(resp)
		if why == "" {
			return summary, nil
		}
		if again {
			return "", fmt.Errorf("the model's answer was no summary, also when it was asked again: %s", why)
		}
		again, called, prompt = true, why == calledTool, prompt+noSummary
	}
}

const calledTool = "it called a tool"

// summaryOf returns the summary in a response, or why there is none. A part of a thought, or a call, would take the place of all
// that the model knows.
func (t *turn) summaryOf(resp *model.Response) (summary, why string) {
	summary = strings.TrimSpace(lastMessage(resp.Items))
	switch {
	case slices.ContainsFunc(resp.Items,
		func(item protocol.ResponseItem) bool { _, call := model.CallOf(item); return call }):
		return "", calledTool
	case summary == "":
		return "", "it was empty"
	case model.Thinks(summary):
		return "", "it was a thought without an end"
	}
	if name := model.TextCall(summary, t.offer()); name != "" {
		return "", "it called " + name + " in its text"
	}
	return summary, ""
}

// opening returns the items with which every history begins.
func (c *conversation) opening() []protocol.ResponseItem {
	items := c.prompts.developerMessage()
	if c.prompts.rules != "" {
		items = append(items, userMessage(text.Tagged("user_instructions", "\n"+c.prompts.rules+"\n")))
	}
	if m, ok := environmentMessage(c.now, nil, c.shell(), permitted(c.cfg).Shown()); ok {
		items = append(items, m)
	}
	return items
}

const (
	bridgeHead = "The conversation so far was too long and has been replaced by a summary.\n\nWhat the user " +
		"wrote, oldest first:\n\n"
	bridgeMiddle = "\n\nThe summary, written by the model that worked on it; commands and changes in it have been " +
		"done:\n\n"
	bridgeSkipped = "[older messages left out]"
	bridgeBetween = "\n\n---\n\n"
)

// bridge returns the message that replaces the history at a compaction. Its parts have a
// share of the context window at most.
func (c *conversation) bridge(said []string, summary string) protocol.MessageItem {
	quoted, most := maxQuoted, len(summary)
	if window := c.contextWindow(); window != nil {
		quoted = int(min(int64(quoted), *window/quotedShare*bytesPerToken))
		most = int(min(int64(most), *window/summaryShare*bytesPerToken))
	}
	return userMessage(bridgeHead + quote(said, quoted) + bridgeMiddle + shorten(summary, most))
}

// quote joins the newest texts that have at most so many bytes. It shortens the oldest one
// of these.
func quote(said []string, most int) string {
	left := most
	var kept []string
	for i, text := range slices.Backward(said) {
		if len(text) > left {
			if left >= most/2 {
				kept = append(kept, shorten(text, left))
				i--
			}
			if i >= 0 {
				kept = append(kept, bridgeSkipped)
			}
			break
		}
		left -= len(text)
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
		text := model.Text(m.Content)
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
	return strings.HasPrefix(text, "<user_instructions>") || strings.HasPrefix(text, "<environment_context>") ||
		strings.HasPrefix(text, formHead) || strings.HasPrefix(text, textCallHead)
}
