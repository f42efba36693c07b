package openaigo_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// answer is the part of a stream that both readers return.
type answer struct {
	Text, Reasoning string
	Calls           []call
	Usage           protocol.TokenUsage
	Failed          bool
}

type call struct{ ID, Name, Arguments string }

var turns = map[string]providertest.Turn{
	"text":          {Text: []string{"Hel", "lo ", "wörld \"quoted\"\n"}},
	"nothing":       {},
	"calls":         {ToolCalls: []providertest.ToolCall{providertest.Shell("c1", "git", "init"), providertest.Tool("c2", "update_plan", map[string]any{"plan": []string{}})}},
	"both":          {Text: []string{"so"}, ToolCalls: []providertest.ToolCall{providertest.Shell("", "ls")}},
	"usage":         {Text: []string{"x"}, Usage: &providertest.Usage{Input: 100, Cached: 40, Output: 20, Reasoning: 7, Total: 120}},
	"no usage":      {Text: []string{"x"}, NoUsage: true},
	"bad arguments": {ToolCalls: []providertest.ToolCall{{ID: "c", Name: "shell", Arguments: `{"half`}}},
	"cut":           {Text: []string{"x"}, TruncateAt: 100},
}

func TestChat(t *testing.T) {
	for name, turn := range turns {
		t.Run(name, func(t *testing.T) {
			p := providertest.New(turn, turn)
			defer p.Close()
			if d := cmp.Diff(theirsOfChat(t.Context(), p.BaseURL()), ours(t.Context(), p.BaseURL(), config.WireChat)); d != "" {
				t.Errorf("(-openai-go +ours):\n%s", d)
			}
		})
	}
}

func TestResponses(t *testing.T) {
	for name, turn := range turns {
		turn.Reasoning = []string{"let me ", "see"}
		t.Run(name, func(t *testing.T) {
			p := providertest.New(turn, turn)
			defer p.Close()
			if d := cmp.Diff(theirsOfResponses(t.Context(), p.BaseURL()), ours(t.Context(), p.BaseURL(), config.WireResponses)); d != "" {
				t.Errorf("(-openai-go +ours):\n%s", d)
			}
		})
	}
}

// ours reads a stream with the engine's client.
func ours(ctx context.Context, url string, wire config.WireAPI) answer {
	none := int64(0)
	c := &model.Client{
		Provider: config.Provider{BaseURL: url, WireAPI: wire, RequestMaxRetries: &none},
		HTTP:     http.DefaultClient, Getenv: func(string) string { return "" }, MaxBytes: 1 << 20, MaxToolCalls: 10,
	}
	resp, err := c.Stream(ctx, &model.Request{Model: "m"}, func(model.Event) {})
	if err != nil {
		return answer{Failed: true}
	}
	var a answer
	if resp.Usage != nil {
		a.Usage = *resp.Usage
	}
	for _, item := range resp.Items {
		switch item := item.(type) {
		case protocol.MessageItem:
			for _, part := range item.Content {
				a.Text += part.Text
			}
		case protocol.ReasoningItem:
			for _, part := range item.Summary {
				a.Reasoning += part.Text
			}
		case protocol.FunctionCallItem:
			a.Calls = append(a.Calls, call{item.CallID, item.Name, item.Arguments})
		}
	}
	return a
}

func client(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func theirsOfChat(ctx context.Context, url string) answer {
	c := client(url)
	stream := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	})
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			return answer{Failed: true}
		}
	}
	if stream.Err() != nil || len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		return answer{Failed: true}
	}
	m := all.Choices[0].Message
	a := answer{Text: m.Content, Usage: protocol.TokenUsage{
		InputTokens: all.Usage.PromptTokens, CachedInputTokens: all.Usage.PromptTokensDetails.CachedTokens,
		OutputTokens: all.Usage.CompletionTokens, ReasoningOutputTokens: all.Usage.CompletionTokensDetails.ReasoningTokens,
		TotalTokens: all.Usage.TotalTokens,
	}}
	for _, c := range m.ToolCalls {
		a.Calls = append(a.Calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return a
}

func theirsOfResponses(ctx context.Context, url string) answer {
	c := client(url)
	stream := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "m"})
	var a answer
	completed := false
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			a.Text += e.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			a.Reasoning += e.Delta
		case responses.ResponseOutputItemDoneEvent:
			if e.Item.Type == "function_call" {
				f := e.Item.AsFunctionCall()
				a.Calls = append(a.Calls, call{f.CallID, f.Name, f.Arguments})
			}
		case responses.ResponseCompletedEvent:
			completed = true
			u := e.Response.Usage
			a.Usage = protocol.TokenUsage{
				InputTokens: u.InputTokens, CachedInputTokens: u.InputTokensDetails.CachedTokens,
				OutputTokens: u.OutputTokens, ReasoningOutputTokens: u.OutputTokensDetails.ReasoningTokens,
				TotalTokens: u.TotalTokens,
			}
		}
	}
	if stream.Err() != nil || !completed {
		return answer{Failed: true}
	}
	return a
}
