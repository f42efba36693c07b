package openaigo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// file has scripted turns, and what the library reads of their streams. The engine's client is tested with it too.
const file = "../../../codexserver/native/internal/model/testdata/openai-go.json"

var update = flag.Bool("update", false, "write what the library reads to "+file)

// row is a turn in the file. The names are those that TestAsOpenAIReads of package model reads.
type row struct {
	Wire string          `json:"wire"`
	Turn json.RawMessage `json:"turn"`
	Want answer          `json:"want,omitzero"`
}

// answer is what the library reads of a stream.
type answer struct {
	Text      string              `json:"text,omitempty"`
	Reasoning string              `json:"reasoning,omitempty"`
	Calls     []call              `json:"calls,omitempty"`
	Usage     protocol.TokenUsage `json:"usage,omitzero"`
	Failed    bool                `json:"failed,omitempty"`
}

type call struct{ ID, Name, Arguments string }

// TestStreams reads the stream of each turn with the library.
func TestStreams(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string]row
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 16 {
		t.Errorf("only %d turns", len(rows))
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			var turn providertest.Turn
			if err := json.Unmarshal(r.Turn, &turn); err != nil {
				t.Fatal(err)
			}
			p := providertest.New(turn)
			defer p.Close()
			read := theirsOfChat
			if r.Wire == "responses" {
				read = theirsOfResponses
			}
			got := read(t.Context(), p.BaseURL())
			if d := cmp.Diff(r.Want, got); d != "" && !*update {
				t.Errorf("(-file +openai-go):\n%s", d)
			}
			r.Want = got
			rows[name] = r
		})
	}
	if *update {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(rows); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
