package native

import (
	"cmp"
	"context"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	// smallHistory is the number of tokens below which the window does not matter.
	smallHistory = 2000
	// windowTimeout is how long a turn waits for the provider's list of models.
	windowTimeout = 2 * time.Second
)

// contextWindow returns the model's context window in tokens, nil when unknown.
func (c *conversation) contextWindow() *int64 {
	p := c.provider()
	tokens := cmp.Or(p.knownWindow(), p.window)
	if tokens <= 0 {
		return nil
	}
	return &tokens
}

// knownWindow returns the window of the configuration or of the model's family, or 0.
func (p *provider) knownWindow() int64 {
	return cmp.Or(p.cfg.ContextWindow, model.FamilyOf(p.cfg.Model).ContextWindow)
}

// learnWindow asks the provider once for the window of a model that is not known.
func (c *conversation) learnWindow(ctx context.Context) {
	p := c.provider()
	if p.asked || p.knownWindow() != 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, windowTimeout)
	defer stop()
	leave, err := c.engine.requests.Take(ctx)
	if err != nil {
		return // the next turn asks again
	}
	defer leave()
	p.asked, p.window = true, p.client.Window(ctx, p.cfg.Model)
}

const (
	// bytesPerToken estimates tokens for providers that do not count them.
	bytesPerToken = 4
	// imageTokens estimates an image, whose tokens do not follow from its bytes.
	imageTokens = 1000
)

// estimateText returns about how many tokens a text has.
func estimateText(text string) int64 { return int64(len(text) / bytesPerToken) }

// estimateAll returns about how many tokens items have.
func estimateAll(items []protocol.ResponseItem) (tokens int64) {
	for _, item := range items {
		tokens += estimate(item)
	}
	return tokens
}

// estimateTools returns about how many tokens tools have.
func estimateTools(tools []model.Tool) (tokens int64) {
	for _, tool := range tools {
		tokens += estimateText(tool.Name + tool.Description + string(tool.Parameters))
	}
	return tokens
}

// estimate returns about how many tokens an item has.
func estimate(item protocol.ResponseItem) int64 {
	images := 0
	if m, ok := item.(protocol.MessageItem); ok {
		text := 0
		for _, part := range m.Content {
			if part.Type == "input_image" {
				images++
			}
			text += len(part.Text)
		}
		return int64(text/bytesPerToken + images*imageTokens)
	}
	raw, err := protocol.AppendItem(nil, item)
	if err != nil {
		return 0
	}
	return int64(len(raw) / bytesPerToken)
}

// byModel reports whether the model wrote an item.
func byModel(item protocol.ResponseItem) bool {
	switch item := item.(type) {
	case protocol.MessageItem:
		return item.Role == "assistant"
	case protocol.FunctionCallOutputItem, protocol.CustomToolCallOutputItem:
		return false
	}
	return true
}
