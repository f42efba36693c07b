package model

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatWire is the Chat Completions API.
type chatWire struct {
	strict   bool // do not request the usage
	bare     bool // do not send reasoning back
	unsigned bool // do not send the signs of calls back
}

func (chatWire) path() string                  { return "/chat/completions" }
func (chatWire) headers(http.Header, *Request) {}

type chatChunk struct {
	Choices []struct {
		Delta        chatDelta  `json:"delta"`
		FinishReason *string    `json:"finish_reason"`
		Usage        *chatUsage `json:"usage"` // Kimi
	} `json:"choices"`
	Usage *chatUsage     `json:"usage"`
	Error jsontext.Value `json:"error"`
	XGroq struct {
		Usage *chatUsage `json:"usage"`
	} `json:"x_groq"`
}

type chatDelta struct {
	Content          jsontext.Value  `json:"content"` // a string; Mistral also writes a list of parts
	Reasoning        jsontext.Value  `json:"reasoning"`
	ReasoningContent jsontext.Value  `json:"reasoning_content"`
	ReasoningDetails jsontext.Value  `json:"reasoning_details"`
	ToolCalls        []chatCallDelta `json:"tool_calls"`
}

type chatCallDelta struct {
	Index    *int    `json:"index"`
	ID       *string `json:"id"`
	Function struct {
		Name             *string        `json:"name"`
		Arguments        jsontext.Value `json:"arguments"`         // a string; some servers write the object
		ThoughtSignature jsontext.Value `json:"thought_signature"` // Gemini behind Portkey's gateway
	} `json:"function"`
	ExtraContent jsontext.Value `json:"extra_content"` // Gemini
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	CachedTokens        int64 `json:"cached_tokens"` // Kimi
	PromptTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *chatUsage) usage() *protocol.TokenUsage {
	if u == nil {
		return nil
	}
	return &protocol.TokenUsage{
		InputTokens:           u.PromptTokens,
		CachedInputTokens:     max(u.PromptTokensDetails.CachedTokens, u.CachedTokens),
		OutputTokens:          u.CompletionTokens,
		ReasoningOutputTokens: u.CompletionTokensDetails.ReasoningTokens,
		TotalTokens:           u.TotalTokens,
	}
}

func (chatWire) read(s *stream) (*Response, error) {
	var answer chatAnswer
	for {
		data, err := s.next()
		switch {
		case err != nil && answer.finished && !isLimit(err):
			return answer.response() // some servers end without [DONE]
		case err != nil:
			return nil, cut(err, "stream closed before the answer was finished")
		case string(data) == "[DONE]":
			return answer.response()
		}
		var chunk chatChunk
		if err := json.Unmarshal(data, &chunk, lenient); err != nil {
			return nil, &StreamError{Reason: fmt.Sprintf("event cannot be read: %v", err)}
		}
		if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
			return nil, s.failure(chunk.Error)
		}
		if u := cmp.Or(chunk.Usage, chunk.XGroq.Usage); u != nil {
			answer.usage = u.usage()
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if choice.Usage != nil {
			answer.usage = choice.Usage.usage()
		}
		if err := answer.add(choice.Delta, s); err != nil {
			return nil, err
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			answer.finished = true
			if answer.cut, err = cutOf(*choice.FinishReason); err != nil {
				return nil, err
			}
		}
	}
}

// The member of a message that has the reasoning goes back with it. The type of a
// [protocol.ReasoningText] remembers it; both are Codex's.
const (
	byReasoningContent = "reasoning_text" // llama.cpp, DeepSeek, Kimi, Qwen
	byReasoning        = "text"           // OpenRouter, vLLM
)

// CallSigns is the type of the texts of a [protocol.ReasoningItem] that nobody reads. They have what a
// provider wants back with the calls that follow the item, a text for each: Gemini refuses a call
// without its thought signature.
const CallSigns = "tool_call_signs"

// signs is such a text as JSON.
type signs struct {
	ExtraContent     jsontext.Value `json:"extra_content,omitzero"`
	ThoughtSignature jsontext.Value `json:"thought_signature,omitzero"`
}

// chatAnswer collects the pieces of an answer.
type chatAnswer struct {
	text, reasoning strings.Builder
	member          string // of the first piece of reasoning
	calls           []*chatCallPieces
	usage           *protocol.TokenUsage
	finished        bool
	cut             Cut
}

type chatCallPieces struct {
	index     *int
	id, name  string
	arguments strings.Builder
	signs     signs
}

func (a *chatAnswer) add(d chatDelta, s *stream) error {
	piece, member := reasoningText(d.ReasoningContent), byReasoningContent
	if piece == "" { // some servers send several, with the same text
		piece, member = reasoningText(d.Reasoning), byReasoning
	}
	content, thinking := contentOf(d.Content)
	piece = cmp.Or(piece, reasoningText(d.ReasoningDetails), thinking)
	if piece != "" {
		if a.reasoning.Len() == 0 {
			a.member = member
		}
		a.reasoning.WriteString(piece)
		s.emit(Event{Type: RawReasoningDelta, Text: piece})
	}
	if content != "" {
		a.text.WriteString(content)
		s.emit(Event{Type: TextDelta, Text: content})
	}
	for _, c := range d.ToolCalls {
		call := a.call(c)
		if len(a.calls) > s.maxCalls {
			return &LimitError{What: fmt.Sprintf("it has more than %d tool calls", s.maxCalls)}
		}
		if c.Function.Name != nil && *c.Function.Name != call.name { // some servers repeat it
			call.name += *c.Function.Name
		}
		call.arguments.WriteString(textOf(c.Function.Arguments))
		keep(&call.signs.ExtraContent, c.ExtraContent)
		keep(&call.signs.ThoughtSignature, c.Function.ThoughtSignature)
	}
	return nil
}

// keep keeps a value unless it is null.
func keep(in *jsontext.Value, v jsontext.Value) {
	if len(v) > 0 && v.Kind() != 'n' {
		*in = v.Clone()
	}
}

// call finds the call that a piece belongs to. Pieces of one call have the same index.
// Servers without an index, or with index 0 for every call, begin a call with a new id.
func (a *chatAnswer) call(d chatCallDelta) *chatCallPieces {
	id := ""
	if d.ID != nil {
		id = *d.ID
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		sameIndex := d.Index == nil || c.index == nil || *d.Index == *c.index
		if sameIndex && (id == "" || c.id == "" || id == c.id) {
			if c.id == "" {
				c.id = id
			}
			return c
		}
		if d.Index == nil && id == "" {
			break
		}
	}
	c := &chatCallPieces{index: d.Index, id: id}
	a.calls = append(a.calls, c)
	return c
}

func (a *chatAnswer) response() (*Response, error) {
	r := &Response{Usage: a.usage, Cut: a.cut}
	if a.reasoning.Len() > 0 {
		r.Items = append(r.Items, protocol.ReasoningItem{
			Summary: []protocol.ReasoningText{},
			Content: []protocol.ReasoningText{{Type: a.member, Text: a.reasoning.String()}},
		})
	}
	if a.text.Len() > 0 {
		r.Items = append(r.Items, assistantMessage(a.text.String()))
	}
	if item, ok, err := a.signs(); err != nil {
		return nil, err
	} else if ok {
		r.Items = append(r.Items, item)
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = newCallID(i)
		}
		r.Items = append(r.Items, protocol.FunctionCallItem{Name: c.name, Arguments: c.arguments.String(), CallID: c.id})
	}
	return r, nil
}

// signs returns the item with the signs of the calls; ok is false if they have none.
func (a *chatAnswer) signs() (item protocol.ReasoningItem, ok bool, err error) {
	item.Summary = []protocol.ReasoningText{}
	for _, c := range a.calls {
		text, err := json.Marshal(c.signs, lenient)
		if err != nil {
			return item, false, err
		}
		ok = ok || len(text) > len("{}")
		item.Content = append(item.Content, protocol.ReasoningText{Type: CallSigns, Text: string(text)})
	}
	return item, ok, nil
}

func assistantMessage(text string) protocol.MessageItem {
	return protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: text}}}
}

// textOf decodes a string, and returns anything else as JSON text.
func textOf(raw jsontext.Value) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw.Kind() == '"' {
		var s string
		if json.Unmarshal(raw, &s, lenient) == nil {
			return s
		}
	}
	return string(raw)
}

// contentOf decodes a piece of a message: a string, or a list with texts and thinking.
func contentOf(raw jsontext.Value) (text, thinking string) {
	var parts []struct {
		Type     string         `json:"type"`
		Text     jsontext.Value `json:"text"`
		Thinking jsontext.Value `json:"thinking"`
	}
	if raw.Kind() != '[' || json.Unmarshal(raw, &parts, lenient) != nil {
		if raw.Kind() == '"' {
			text = textOf(raw)
		}
		return text, ""
	}
	for _, part := range parts {
		if part.Type == "thinking" {
			thinking += reasoningText(part.Thinking)
		} else {
			text += textOf(part.Text)
		}
	}
	return text, thinking
}

// reasoningText decodes a piece of reasoning: a string, an object with text or content, or a
// list of these.
func reasoningText(raw jsontext.Value) string {
	var parts []jsontext.Value
	if raw.Kind() == '[' && json.Unmarshal(raw, &parts, lenient) == nil {
		var text strings.Builder
		for _, part := range parts {
			if part.Kind() != '[' {
				text.WriteString(reasoningText(part))
			}
		}
		return text.String()
	}
	if raw.Kind() != '{' {
		if raw.Kind() == '"' {
			return textOf(raw)
		}
		return ""
	}
	var o struct {
		Text    jsontext.Value `json:"text"`
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal(raw, &o, lenient) != nil {
		return ""
	}
	if o.Text.Kind() == '"' {
		return textOf(o.Text)
	}
	if o.Content.Kind() == '"' {
		return textOf(o.Content)
	}
	return ""
}
