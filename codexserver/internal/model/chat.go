package model

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatWire is the Chat Completions API.
type chatWire struct{}

func (chatWire) path() string                  { return "/chat/completions" }
func (chatWire) headers(http.Header, *Request) {}

type chatBody struct {
	Model         string            `json:"model"`
	Messages      []chatMessage     `json:"messages"`
	Stream        bool              `json:"stream"`
	StreamOptions chatStreamOptions `json:"stream_options"`
	Tools         []chatTool        `json:"tools,omitempty"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"` // a string, null or parts
	ToolCalls  []chatCall     `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitzero"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatPart struct {
	Type     string     `json:"type"`
	Text     *string    `json:"text,omitzero"`
	ImageURL *chatImage `json:"image_url,omitzero"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatTool struct {
	Type     string           `json:"type"`
	Function chatToolFunction `json:"function"`
}

type chatToolFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Strict      bool           `json:"strict"`
	Parameters  jsontext.Value `json:"parameters"`
}

var null = jsontext.Value("null")

func (chatWire) body(req *Request) ([]byte, error) {
	b := chatBody{Model: req.Model, Stream: true, StreamOptions: chatStreamOptions{IncludeUsage: true}}
	if req.Instructions != "" {
		b.Messages = append(b.Messages, chatMessage{Role: "system", Content: quoted(req.Instructions)})
	}
	for _, item := range req.Items {
		b.Messages = appendChat(b.Messages, item)
	}
	for _, t := range req.Tools {
		if t.Type == "" || t.Type == "function" {
			b.Tools = append(b.Tools, chatTool{Type: "function", Function: chatToolFunction{
				Name: t.Name, Description: t.Description, Parameters: rawSchema(t.Parameters),
			}})
		}
	}
	return json.Marshal(b, jsontext.AllowInvalidUTF8(true))
}

// appendChat adds an item in the form of this wire. Calls join the message of
// the assistant before them, so that what it said keeps its place. Items that
// the wire cannot say are left out.
func appendChat(out []chatMessage, item protocol.ResponseItem) []chatMessage {
	call := func(id, name, arguments string) []chatMessage {
		c := chatCall{ID: id, Type: "function", Function: chatFunction{Name: name, Arguments: arguments}}
		if n := len(out); n > 0 && out[n-1].Role == "assistant" {
			out[n-1].ToolCalls = append(out[n-1].ToolCalls, c)
			return out
		}
		return append(out, chatMessage{Role: "assistant", Content: null, ToolCalls: []chatCall{c}})
	}
	output := func(id, text string) []chatMessage {
		return append(out, chatMessage{Role: "tool", ToolCallID: id, Content: quoted(text)})
	}
	switch item := item.(type) {
	case protocol.MessageItem:
		return append(out, chatMessage{Role: item.Role, Content: chatContent(item.Content)})
	case protocol.FunctionCallItem:
		return call(item.CallID, item.Name, item.Arguments)
	case protocol.FunctionCallOutputItem:
		return output(item.CallID, item.Output)
	case protocol.CustomToolCallItem: // from a conversation that began on the other wire
		input, _ := json.Marshal(map[string]string{"input": item.Input}, jsontext.AllowInvalidUTF8(true))
		return call(item.CallID, item.Name, string(input))
	case protocol.CustomToolCallOutputItem:
		return output(item.CallID, item.Output)
	case protocol.LocalShellCallItem:
		input, _ := json.Marshal(map[string][]string{"command": item.Action.Command}, jsontext.AllowInvalidUTF8(true))
		return call(item.CallID, "shell", string(input))
	}
	return out
}

// chatContent is one string where there are only texts.
func chatContent(content []protocol.ContentItem) jsontext.Value {
	var text strings.Builder
	parts := make([]chatPart, 0, len(content))
	images := false
	for _, c := range content {
		if c.Type == "input_image" {
			images = true
			parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImage{URL: c.ImageURL}})
			continue
		}
		text.WriteString(c.Text)
		parts = append(parts, chatPart{Type: "text", Text: &c.Text})
	}
	if !images {
		return quoted(text.String())
	}
	raw, err := json.Marshal(parts, jsontext.AllowInvalidUTF8(true))
	if err != nil { // texts and addresses always marshal
		return quoted(text.String())
	}
	return raw
}

func quoted(s string) jsontext.Value {
	raw, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	return raw
}

type chatChunk struct {
	Choices []struct {
		Delta        chatDelta `json:"delta"`
		FinishReason *string   `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage     `json:"usage"`
	Error jsontext.Value `json:"error"`
}

type chatDelta struct {
	Content          *string         `json:"content"`
	Reasoning        jsontext.Value  `json:"reasoning"`
	ReasoningContent jsontext.Value  `json:"reasoning_content"`
	ToolCalls        []chatCallDelta `json:"tool_calls"`
}

type chatCallDelta struct {
	Index    *int    `json:"index"`
	ID       *string `json:"id"`
	Function struct {
		Name      *string        `json:"name"`
		Arguments jsontext.Value `json:"arguments"` // a string; some servers write the object
	} `json:"function"`
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
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
		CachedInputTokens:     u.PromptTokensDetails.CachedTokens,
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
			return nil, toldError(chunk.Error)
		}
		if chunk.Usage != nil {
			answer.usage = chunk.Usage.usage()
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if err := answer.add(choice.Delta, s); err != nil {
			return nil, err
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			answer.finished = true
		}
	}
}

// chatAnswer collects the pieces of an answer.
type chatAnswer struct {
	text, reasoning strings.Builder
	calls           []*chatCallPieces
	usage           *protocol.TokenUsage
	finished        bool
}

type chatCallPieces struct {
	index     *int
	id, name  string
	arguments strings.Builder
}

func (a *chatAnswer) add(d chatDelta, s *stream) error {
	for _, raw := range []jsontext.Value{d.Reasoning, d.ReasoningContent} {
		if piece := reasoningText(raw); piece != "" {
			a.reasoning.WriteString(piece)
			s.emit(Event{Type: RawReasoningDelta, Text: piece})
		}
	}
	if d.Content != nil && *d.Content != "" {
		a.text.WriteString(*d.Content)
		s.emit(Event{Type: TextDelta, Text: *d.Content})
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
	}
	return nil
}

// call finds the call that a piece belongs to. Pieces belong together by index;
// servers that do not count, or count 0 each time, show a new call by a new id.
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
	r := &Response{Usage: a.usage}
	if a.reasoning.Len() > 0 {
		r.Items = append(r.Items, protocol.ReasoningItem{
			Summary: []protocol.ReasoningText{},
			Content: []protocol.ReasoningText{{Type: "reasoning_text", Text: a.reasoning.String()}},
		})
	}
	if a.text.Len() > 0 {
		r.Items = append(r.Items, assistantMessage(a.text.String()))
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = newCallID(i)
		}
		r.Items = append(r.Items, protocol.FunctionCallItem{Name: c.name, Arguments: c.arguments.String(), CallID: c.id})
	}
	return r, nil
}

func assistantMessage(text string) protocol.MessageItem {
	return protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: text}}}
}

// textOf reads a string, and anything else as the JSON that it is.
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

// reasoningText reads the spellings of a piece of reasoning: a string, or an
// object with text or content.
func reasoningText(raw jsontext.Value) string {
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
