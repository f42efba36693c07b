package native

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// stream requests a response, and again when it fails, as often as the provider's
// settings allow.
func (t *turn) stream(ctx context.Context, req *model.Request, progress func(model.Event)) (*model.Response, error) {
	retries := 5
	if n := t.client.Provider.StreamMaxRetries; n != nil {
		retries = int(*n)
	}
	for attempt := 1; ; attempt++ {
		if err := t.afford(); err != nil {
			return nil, err
		}
		resp, err := t.request(ctx, req, progress)
		if err == nil {
			return resp, nil
		}
		after, again := model.Retryable(err)
		if ctx.Err() != nil || !again || attempt > retries {
			return nil, err
		}
		wait := cmp.Or(after, model.Backoff(attempt-1))
		t.emit(protocol.StreamError{Message: fmt.Sprintf("stream error: %v; retrying %d/%d in %v…",
			err, attempt, retries, wait.Round(time.Millisecond))})
		if err := model.Wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// request sends one request.
func (t *turn) request(ctx context.Context, req *model.Request, progress func(model.Event)) (*model.Response, error) {
	leave, err := t.engine.requests.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.client.Stream(ctx, req, progress)
}

// chat reports whether the provider's wire is Chat Completions.
func (c *conversation) chat() bool { return c.client.Provider.WireAPI != config.WireResponses }

// progress reports a response while it arrives. On the Chat wire, pieces of the text are
// reported only with show_raw_agent_reasoning, as in Codex.
func (t *turn) progress(e model.Event) {
	raw := t.cfg.ShowRawAgentReasoning
	summaries := !t.cfg.HideAgentReasoning
	switch e.Type {
	case model.TextDelta:
		if !t.chat() || raw {
			t.emit(protocol.AgentMessageDelta{Delta: e.Text})
		}
	case model.ReasoningDelta:
		if summaries {
			t.emit(protocol.AgentReasoningDelta{Delta: e.Text})
		}
	case model.ReasoningSection:
		if summaries {
			t.emit(protocol.AgentReasoningSectionBreak{})
		}
	case model.RawReasoningDelta:
		if raw {
			t.emit(protocol.AgentReasoningRawContentDelta{Delta: e.Text})
		}
	case model.RateLimitsRead:
		t.limits = e.RateLimits
		t.emit(protocol.TokenCount{Info: t.usage, RateLimits: t.limits})
	case model.WebSearchStarted:
		t.emit(protocol.WebSearchBegin{CallID: e.CallID})
	case model.ImagesLeftOut:
		t.emit(protocol.BackgroundEvent{Message: "The model cannot take images: they were left out, with a remark to the model."})
	case model.ItemDone:
		t.emitItem(e.Item)
	}
}

// emitItem reports a message or the reasoning of the model. Calls emit their own events.
func (t *turn) emitItem(item protocol.ResponseItem) {
	switch item := item.(type) {
	case protocol.MessageItem:
		if text := messageText(item); text != "" {
			t.emit(protocol.AgentMessage{Message: text})
		}
	case protocol.ReasoningItem:
		if !t.cfg.HideAgentReasoning {
			for _, s := range item.Summary {
				t.emit(protocol.AgentReasoning{Text: s.Text})
			}
		}
		if t.cfg.ShowRawAgentReasoning {
			for _, s := range item.Content {
				t.emit(protocol.AgentReasoningRawContent{Text: s.Text})
			}
		}
	case protocol.RawItem:
		if item.Type == "web_search_call" {
			t.emit(webSearchEnd(item))
		}
	}
}

func webSearchEnd(item protocol.RawItem) protocol.WebSearchEnd {
	var search struct {
		ID     string `json:"id"`
		Action struct {
			Query string `json:"query"`
		} `json:"action"`
	}
	_ = json.Unmarshal(item.Raw, &search) // missing members stay empty
	return protocol.WebSearchEnd{CallID: search.ID, Query: search.Action.Query}
}
