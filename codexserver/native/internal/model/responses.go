package model

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesWire is the Responses API.
type responsesWire struct{}

func (responsesWire) path() string { return "/responses" }

func (responsesWire) headers(h http.Header, req *Request) {
	h.Set("OpenAI-Beta", "responses=experimental")
	if req.ConversationID != "" {
		// Not canonical on purpose: the names have underscores.
		h["conversation_id"] = []string{req.ConversationID}
		h["session_id"] = []string{req.ConversationID}
	}
}

// responsesTail is what follows the history in a request.
type responsesTail struct {
	Tools             []responsesTool `json:"tools"`
	ToolChoice        string          `json:"tool_choice"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	Reasoning         *Reasoning      `json:"reasoning"`
	Store             bool            `json:"store"`
	Stream            bool            `json:"stream"`
	Include           []string        `json:"include"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitzero"`
	Text              *responsesText  `json:"text,omitzero"`
}

type responsesText struct {
	Verbosity string           `json:"verbosity,omitzero"`
	Format    *responsesFormat `json:"format,omitzero"`
}

type responsesFormat struct {
	Type   string         `json:"type"`
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name,omitzero"`
	Description string         `json:"description,omitzero"`
	Strict      *bool          `json:"strict,omitzero"`
	Parameters  jsontext.Value `json:"parameters,omitzero"`
	*WebSearch
}

func (responsesWire) body(req *Request) ([]byte, error) {
	b := appendString(append(make([]byte, 0, sizeOf(req)), `{"model":`...), req.Model)
	b = appendString(append(b, `,"instructions":`...), req.Instructions)
	b = append(b, `,"input":[`...)
	first := true
	for _, item := range req.Items {
		if r, ok := item.(protocol.ReasoningItem); ok {
			switch plain := r.EncryptedContent != nil && *r.EncryptedContent == ""; {
			case r.EncryptedContent == nil || plain && len(r.Content) == 0:
				continue // the provider cannot read it
			case !plain:
				r.Content = nil
			}
			item = r
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		var err error
		if b, err = protocol.AppendItem(b, item); err != nil {
			return nil, err
		}
	}
	tail := responsesTail{ToolChoice: "auto", ParallelToolCalls: req.SeveralCalls, Reasoning: req.Reasoning, Stream: true, PromptCacheKey: req.ConversationID}
	if req.Reasoning != nil {
		tail.Include = []string{"reasoning.encrypted_content"}
	}
	if req.Verbosity != "" {
		tail.Text = &responsesText{Verbosity: req.Verbosity}
	}
	if req.OutputSchema != nil {
		if tail.Text == nil {
			tail.Text = &responsesText{}
		}
		tail.Text.Format = &responsesFormat{Type: "json_schema", Name: schemaName, Strict: true, Schema: jsontext.Value(req.OutputSchema)}
	}
	for _, t := range req.Tools {
		tail.Tools = append(tail.Tools, responsesToolOf(t))
	}
	rest, err := json.Marshal(tail, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return append(append(b, "],"...), rest[1:]...), nil
}

func responsesToolOf(t Tool) responsesTool {
	if t.Type != "" && t.Type != "function" {
		return responsesTool{Type: t.Type, WebSearch: t.WebSearch}
	}
	strict := false
	return responsesTool{
		Type: "function", Name: t.Name, Description: t.Description, Strict: &strict, Parameters: rawSchema(t.Parameters),
	}
}

// responsesEvent has the members of all the events that are read.
type responsesEvent struct {
	Type     string         `json:"type"`
	Delta    jsontext.Value `json:"delta"`
	Item     jsontext.Value `json:"item"`
	Response struct {
		Usage             *responsesUsage `json:"usage"`
		Error             jsontext.Value  `json:"error"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
	Error   jsontext.Value `json:"error"`
	Message jsontext.Value `json:"message"`
}

type responsesUsage struct {
	InputTokens        int64 `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

func (u *responsesUsage) usage() *protocol.TokenUsage {
	if u == nil {
		return nil
	}
	return &protocol.TokenUsage{
		InputTokens:           u.InputTokens,
		CachedInputTokens:     u.InputTokensDetails.CachedTokens,
		OutputTokens:          u.OutputTokens,
		ReasoningOutputTokens: u.OutputTokensDetails.ReasoningTokens,
		TotalTokens:           u.TotalTokens,
	}
}

func (responsesWire) read(s *stream) (*Response, error) {
	s.emit(Event{Type: RateLimitsRead, RateLimits: rateLimits(s.header)})
	out := &Response{}
	calls := 0
	var text strings.Builder // of a message that has not ended
	for {
		data, err := s.next()
		if err != nil {
			return nil, cut(err, "stream closed before response.completed")
		}
		if string(data) == "[DONE]" { // from servers that mix the two wires
			continue
		}
		var e responsesEvent
		if err := json.Unmarshal(data, &e, lenient); err != nil {
			return nil, &StreamError{Reason: fmt.Sprintf("event cannot be read: %v", err)}
		}
		switch e.Type {
		case "response.output_text.delta":
			piece := textOf(e.Delta)
			text.WriteString(piece)
			s.emit(Event{Type: TextDelta, Text: piece})
		case "response.reasoning_summary_text.delta":
			s.emit(Event{Type: ReasoningDelta, Text: textOf(e.Delta)})
		case "response.reasoning_text.delta":
			s.emit(Event{Type: RawReasoningDelta, Text: textOf(e.Delta)})
		case "response.reasoning_summary_part.added":
			s.emit(Event{Type: ReasoningSection})
		case "response.output_item.added":
			if item := headOf(e.Item); item.Type == "web_search_call" {
				s.emit(Event{Type: WebSearchStarted, CallID: item.ID})
			}
		case "response.output_item.done":
			item, err := responsesItem(e.Item, &calls)
			if err != nil {
				return nil, &StreamError{Reason: err.Error()}
			}
			if calls > s.maxCalls {
				return nil, &LimitError{What: fmt.Sprintf("it has more than %d tool calls", s.maxCalls)}
			}
			if _, ok := item.(protocol.MessageItem); ok {
				text.Reset()
			}
			out.Items = append(out.Items, item)
			s.emit(Event{Type: ItemDone, Item: item})
		case "response.completed", "response.incomplete", "response.done":
			out.Usage = e.Response.Usage.usage()
			reason := e.Response.IncompleteDetails.Reason
			if out.Cut, err = cutOf(reason); err != nil {
				return nil, err
			}
			if out.Cut == "" && e.Type == "response.incomplete" {
				out.Cut = Cut(cmp.Or(shorten(s.hide(reason)), "without a reason"))
			}
			if out.Cut != "" && text.Len() > 0 { // of a message whose end was not sent
				item := assistantMessage(text.String())
				out.Items = append(out.Items, item)
				s.emit(Event{Type: ItemDone, Item: item})
			}
			return out, nil
		case "response.failed":
			return nil, s.failure(e.Response.Error)
		case "error":
			if e.Error.Kind() == '{' {
				return nil, s.failure(e.Error)
			}
			return nil, s.failure(e.Message)
		}
	}
}

type itemHead struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	CallID string `json:"call_id"`
}

func headOf(raw jsontext.Value) (h itemHead) {
	_ = json.Unmarshal(raw, &h, lenient) // leaves the type empty if it is not an item
	return h
}

// responsesItem decodes a whole item, counts calls, and sets missing ids of calls.
func responsesItem(raw jsontext.Value, calls *int) (protocol.ResponseItem, error) {
	item, err := protocol.ParseItem(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	if err != nil {
		return nil, fmt.Errorf("item cannot be read: %w", err)
	}
	switch i := item.(type) {
	case protocol.FunctionCallItem:
		*calls++
		if i.CallID == "" {
			i.CallID = newCallID(*calls)
		}
		return i, nil
	case protocol.CustomToolCallItem:
		*calls++
		if i.CallID == "" {
			i.CallID = newCallID(*calls)
		}
		return i, nil
	case protocol.LocalShellCallItem:
		*calls++
		if i.CallID == "" {
			i.CallID = headOf(raw).ID
		}
		return i, nil
	}
	return item, nil
}
