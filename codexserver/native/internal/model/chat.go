package model

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatWire is the Chat Completions API.
type chatWire struct{ form }

func (chatWire) path() string                  { return chatPath }
func (chatWire) headers(http.Header, *Request) {}

type chatChunk struct {
	Choices []chatChoice   `json:"choices"`
	Usage   jsontext.Value `json:"usage"`
	Error   jsontext.Value `json:"error"`
	XGroq   struct {
		Usage jsontext.Value `json:"usage"`
	} `json:"x_groq"`
}

type chatChoice struct {
	Delta        chatDelta      `json:"delta"`
	Message      jsontext.Value `json:"message"` // of a whole answer, as a delta
	Text         jsontext.Value `json:"text"`    // in its place, as completions had it before chats
	FinishReason jsontext.Value `json:"finish_reason"`
	Usage        jsontext.Value `json:"usage"` // Kimi
	Error        jsontext.Value `json:"error"` // OpenRouter
}

type chatDelta struct {
	Content          jsontext.Value  `json:"content"` // a string; Mistral also writes a list of parts
	Refusal          jsontext.Value  `json:"refusal"`
	Reasoning        jsontext.Value  `json:"reasoning"`
	ReasoningContent jsontext.Value  `json:"reasoning_content"`
	ReasoningDetails jsontext.Value  `json:"reasoning_details"`
	ToolCalls        []chatCallDelta `json:"tool_calls"`
	FunctionCall     jsontext.Value  `json:"function_call"` // the one call of an answer, before there were several
}

func (d *chatDelta) empty() bool {
	return !has(d.Content) && !has(d.Refusal) && len(d.ToolCalls) == 0 && !has(d.FunctionCall) && !has(d.Reasoning) && !has(d.ReasoningContent) && !has(d.ReasoningDetails)
}

type chatCallDelta struct {
	Index        *count         `json:"index"`
	ID           jsontext.Value `json:"id"`
	Function     chatFunction   `json:"function"`
	Name         jsontext.Value `json:"name"`          // of a call without the member function
	Arguments    jsontext.Value `json:"arguments"`     // also of such a call
	ExtraContent jsontext.Value `json:"extra_content"` // Gemini
}

type chatFunction struct {
	Name             jsontext.Value `json:"name"`
	Arguments        jsontext.Value `json:"arguments"`         // a string; some servers write the object
	ThoughtSignature jsontext.Value `json:"thought_signature"` // Gemini behind Portkey's gateway
}

func (chatWire) read(s *stream) (*Response, error) {
	var answer chatAnswer
	var chunk chatChunk
	for {
		e, done, err := s.object()
		switch {
		case done, err != nil && answer.finished && !isLimit(err): // some servers end without [DONE]
			return answer.response()
		case err != nil:
			return nil, s.closed(err, "stream closed before the answer was finished")
		}
		chunk = chatChunk{Choices: chunk.Choices[:0]} // whose memory is used again
		if !take(e.data, &chunk) {
			if err := s.unread(e); err != nil {
				return nil, err
			}
			continue
		}
		if err := answer.chunk(e, &chunk, s); err != nil {
			return nil, err
		}
	}
}

// chunk adds an event.
func (a *chatAnswer) chunk(e sseEvent, chunk *chatChunk, s *stream) error {
	for _, raw := range []jsontext.Value{chunk.XGroq.Usage, chunk.Usage} {
		if u := usageOf(raw); u != nil {
			a.usage = u
		}
	}
	if len(chunk.Choices) == 0 || fails(chunk.Error, 0) || fails(chunk.Choices[0].Error, 0) {
		return s.trouble(e)
	}
	choice := &chunk.Choices[0]
	word := wordOf(choice.FinishReason)
	whole := e.body && has(choice.Message)
	if e.open && !a.finished && word == "" && !whole {
		return nil // a part of it may be missing
	}
	if u := usageOf(choice.Usage); u != nil {
		a.usage = u
	}
	delta := &choice.Delta
	switch {
	case !delta.empty():
	case !has(choice.Message):
		delta.Content = choice.Text
	case a.empty():
		take(choice.Message, delta)
	}
	if err := a.add(delta, s); err != nil {
		return err
	}
	if word != "" || whole {
		why, err := cutOf(word, s.hide)
		if err != nil {
			var said refusal
			if said.read(e.data); len(said.words) > 0 {
				return s.failure(e.data)
			}
			return err
		}
		a.finished, a.cut = true, cmp.Or(a.cut, why)
	}
	return nil
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
	text, reasoning pieces
	member          string // of the first piece of reasoning
	calls           chatCalls
	usage           *protocol.TokenUsage
	finished        bool
	cut             Cut
}

func (a *chatAnswer) empty() bool { return a.text.Len()+a.reasoning.Len()+len(a.calls) == 0 }

func (a *chatAnswer) add(d *chatDelta, s *stream) error {
	content := d.Content
	if !has(content) {
		content = d.Refusal
	}
	var thinking string
	switch content.Kind() {
	case '[', '{':
		var text string
		text, thinking = contentOf(content, 0)
		content, _ = jsontext.AppendQuote(nil, text)
	case '0':
		content = quoted(content)
	}
	if piece := a.think(d, thinking); piece != "" {
		s.emit(Event{Type: RawReasoningDelta, Text: piece})
	}
	if content.Kind() == '"' {
		if piece := a.text.add(content); piece != "" {
			s.emit(Event{Type: TextDelta, Text: piece})
		}
	}
	if has(d.FunctionCall) {
		var only chatCallDelta
		take(d.FunctionCall, &only.Function)
		d.ToolCalls = append(d.ToolCalls, only)
	}
	for i := range d.ToolCalls {
		piece := &d.ToolCalls[i]
		if piece.Function.Name == nil && piece.Function.Arguments == nil {
			piece.Function.Name, piece.Function.Arguments = piece.Name, piece.Arguments
		}
		if !has(piece.ID) && !has(piece.Function.Name) && len(piece.Function.Arguments) == 0 && !has(piece.ExtraContent) {
			continue
		}
		call := a.calls.of(piece)
		if len(a.calls) > maxCalls {
			return &LimitError{What: fmt.Sprintf("it has more than %d tool calls", maxCalls)}
		}
		call.add(piece.Function.Arguments)
		keep(&call.signs.ExtraContent, piece.ExtraContent)
		keep(&call.signs.ThoughtSignature, piece.Function.ThoughtSignature)
	}
	return nil
}

// think adds a piece of reasoning and returns it. Some servers send several members with the same text.
func (a *chatAnswer) think(d *chatDelta, thinking string) (piece string) {
	for _, from := range []struct {
		raw    jsontext.Value
		member string
	}{{d.ReasoningContent, byReasoningContent}, {d.Reasoning, byReasoning}, {d.ReasoningDetails, byReasoning}} {
		if !has(from.raw) {
			continue
		}
		if raw := from.raw; raw.Kind() == '"' {
			piece = a.reasoning.add(raw)
		} else if piece = reasoningOf(raw); piece != "" {
			a.reasoning.WriteString(piece)
		}
		if piece != "" || len(a.reasoning.half) > 0 {
			a.member = cmp.Or(a.member, from.member)
			return piece
		}
	}
	a.reasoning.WriteString(thinking)
	return thinking
}

// keep keeps a value unless it is null.
func keep(in *jsontext.Value, v jsontext.Value) {
	if len(v) > 0 && v.Kind() != 'n' {
		*in = v.Clone()
	}
}

func (a *chatAnswer) response() (*Response, error) {
	r := &Response{Usage: a.usage, Cut: a.cut}
	a.reasoning.end()
	a.text.end()
	if a.reasoning.Len() > 0 {
		r.Items = append(r.Items, protocol.ReasoningItem{
			Summary: []protocol.ReasoningText{},
			Content: []protocol.ReasoningText{{Type: cmp.Or(a.member, byReasoning), Text: a.reasoning.String()}},
		})
	}
	if a.text.Len() > 0 {
		r.Items = append(r.Items, assistantMessage(a.text.String()))
	}
	calls := len(r.Items)
	for _, c := range a.calls {
		c.arguments.end()
		item := protocol.FunctionCallItem{Name: c.name, Arguments: argumentsOf(c.arguments.String()), CallID: c.id}
		r.Items, c.once = addOnce(r.Items, item)
	}
	item, ok, err := a.signs()
	if ok {
		r.Items = slices.Insert(r.Items, calls, protocol.ResponseItem(item))
	}
	return r, err
}

// signs returns the item with the signs of the calls; ok is false if they have none.
func (a *chatAnswer) signs() (item protocol.ReasoningItem, ok bool, err error) {
	item.Summary = []protocol.ReasoningText{}
	for _, c := range a.calls {
		if !c.once {
			continue
		}
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
