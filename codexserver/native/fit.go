package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// smallestRoom is the number of tokens of a history below which a request for its summary
// makes no sense.
const smallestRoom = 16

// fitting returns the newest items that have at most so many tokens. A text may have a
// quarter of these; a longer one loses its middle.
func fitting(items []protocol.ResponseItem, tokens int64) []protocol.ResponseItem {
	var kept []protocol.ResponseItem
	left := tokens
	for _, item := range slices.Backward(items) {
		item = shortened(item, int(tokens/4*bytesPerToken))
		if left -= estimate(item); left < 0 {
			break
		}
		kept = append(kept, item)
	}
	slices.Reverse(kept)
	return kept
}

// shortened returns an item whose texts have at most so many bytes. An image that counts
// for more is left out.
func shortened(item protocol.ResponseItem, most int) protocol.ResponseItem {
	switch it := item.(type) {
	case protocol.MessageItem:
		it.Content = slices.Clone(it.Content)
		for i, part := range it.Content {
			switch {
			case part.Type == "input_image" && most < imageTokens*bytesPerToken:
				it.Content[i] = protocol.ContentItem{Type: "input_text", Text: "[image left out]"}
			case len(part.Text) > most:
				it.Content[i].Text = shorten(part.Text, most)
			}
		}
		return it
	case protocol.FunctionCallOutputItem:
		it.Output = shorten(it.Output, most)
		return it
	case protocol.CustomToolCallOutputItem:
		it.Output = shorten(it.Output, most)
		return it
	case protocol.FunctionCallItem:
		if len(it.Arguments) > most {
			it.Arguments = `{"left_out":true}` // some providers parse the arguments
		}
		return it
	case protocol.CustomToolCallItem:
		it.Input = shorten(it.Input, most)
		return it
	}
	return item
}

// shorten replaces the middle of a text that has more bytes than most.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "\n[… the middle is left out …]\n"
	half := max(most-len(mark), 0) / 2
	return strings.ToValidUTF8(text[:half], "") + mark + strings.ToValidUTF8(text[len(text)-half:], "")
}

// adviceRoom says what a caller can do about a conversation that is too long.
const adviceRoom = "Begin a new one with codex."

// respond requests a response. It summarises a history that has no room for what is new in
// it, before the request if the size is known, else after the provider has refused it.
func (t *turn) respond(ctx context.Context) (resp *model.Response, err error) {
	if err = t.makeRoom(ctx); err == nil {
		resp, err = t.ask(ctx)
	}
	if errors.Is(err, model.ErrContextWindow) {
		t.conv.learnWindow(ctx)
		if !t.compacted && slices.ContainsFunc(t.conv.history.items, byModel) {
			if err = t.compact(ctx); err == nil {
				resp, err = t.ask(ctx)
			}
		}
	}
	if errors.Is(err, model.ErrContextWindow) {
		return nil, t.refuse(err)
	}
	return resp, err
}

// hopeless reports whether the next request is far longer than the context window, although
// nothing in it can be summarised. The size is estimated, so the provider decides about a
// request that is little longer.
func (t *turn) hopeless() bool {
	window := t.conv.contextWindow()
	return window != nil && !slices.ContainsFunc(t.conv.history.items, byModel) && t.requestSize() > *window/2*3
}

// requestSize estimates the tokens of the next request.
func (t *turn) requestSize() int64 {
	return estimateText(t.instructions()) + estimateAll(t.conv.history.items) + estimateTools(t.offer())
}

// refuse ends a turn whose request does not fit the context window. It takes back the
// messages that the model has not read, so that the next turn fits again.
func (t *turn) refuse(err error) error {
	text := "is too long for the model"
	window, tokens := t.conv.contextWindow(), t.requestSize()
	if window != nil {
		text += fmt.Sprintf(", whose context window has %d tokens", *window)
	}
	if window == nil || tokens > *window { // else the estimate is too low
		text += fmt.Sprintf("; the request has about %d", tokens)
	}
	if _, words, ok := strings.Cut(err.Error(), model.ErrContextWindow.Error()+": "); ok {
		text += "; the provider says: " + words
	}
	unread := t.conv.history.unread()
	said, others := t.conv.history.said(unread)
	if len(said) == 0 {
		return errors.New("the conversation " + text + ". " + adviceRoom)
	}
	if err := t.conv.withdraw(len(said), slices.Concat(t.conv.history.items[:unread], others)); err != nil {
		return err
	}
	return errors.New("the message " + text + ". The conversation continues without it: send a shorter one.")
}
