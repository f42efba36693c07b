package model

import (
	"cmp"
	"errors"
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

func (chatWire) read(to *attempt) (*Response, error) {
	a := &chatAnswer{from: to, out: &Response{}}
	for e := range to.events {
		if e.done {
			return a.out, a.end()
		}
		if err := a.event(e); err != nil {
			return nil, err
		}
	}
	if _, limit := errors.AsType[*LimitError](to.err); a.finished && !limit { // some servers end without [DONE]
		return a.out, a.end()
	}
	return nil, to.closed("stream closed before the answer was finished")
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
	ThoughtSignature jsontext.Value `json:"thought_signature,omitzero"` // Gemini behind Portkey's gateway
	// ReasoningDetails are those of the whole message, with its first call: OpenRouter's, for Gemini and Claude.
	ReasoningDetails []thoughtDetail `json:"reasoning_details,omitempty"`
}

// thoughtDetail is one of the reasoning_details of a message.
type thoughtDetail map[string]jsontext.Value

// detailTexts are the members of a detail that come in pieces.
var detailTexts = []string{"text", "summary", "data"}

// add adds the details of an event. Pieces of one detail have its type and its index.
func (s *signs) add(list []value) {
	for _, v := range list {
		piece := thoughtDetail{}
		for _, member := range v.all {
			keep, name := member.raw.Clone(), value{raw: member.name}.text()
			piece[name] = keep
		}
		last := len(s.ReasoningDetails) - 1
		if v.kind() != '{' || last < 0 && len(piece) == 0 {
			continue
		}
		if last < 0 || !s.ReasoningDetails[last].goesOn(piece) {
			if len(s.ReasoningDetails) < maxItems {
				s.ReasoningDetails = append(s.ReasoningDetails, piece)
			}
			continue
		}
		whole := s.ReasoningDetails[last]
		for name, said := range piece {
			if before := whole[name]; slices.Contains(detailTexts, name) && before.Kind() == '"' && said.Kind() == '"' {
				said, _ = jsontext.AppendQuote(nil, value{raw: before}.text()+value{raw: said}.text())
			}
			if said.Kind() != 'n' || whole[name] == nil {
				whole[name] = said
			}
		}
	}
}

// goesOn reports whether a piece is one of the same detail.
func (d thoughtDetail) goesOn(piece thoughtDetail) bool {
	return piece["index"] != nil && string(d["index"]) == string(piece["index"]) && string(d["type"]) == string(piece["type"])
}

// chatAnswer collects the pieces of an answer.
type chatAnswer struct {
	from            *attempt
	out             *Response
	text, reasoning pieces
	member          string // of the first piece of reasoning
	details         signs
	calls           chatCalls
	finished        bool
}

// event adds an event.
func (a *chatAnswer) event(e event) error {
	a.usage(e.at("x_groq").at("usage"))
	a.usage(e.at("usage"))
	choices := e.at("choices").list()
	if len(choices) == 0 || e.at("error").fails() || choices[0].at("error").fails() { // the latter from OpenRouter
		return a.from.trouble(e)
	}
	choice := choices[0]
	word, message := choice.at("finish_reason").word(), choice.at("message")
	whole := e.body && message.has()
	if e.open && !a.finished && word == "" && !whole {
		return nil // a part of it may be missing
	}
	a.usage(choice.at("usage")) // Kimi's
	delta := choice.at("delta")
	switch {
	case delta.kind() == '"', slices.ContainsFunc(deltaMembers, func(name string) bool { return delta.at(name).has() }):
	case !message.has():
		delta = choice.at("text") // as completions had it before chats
	case a.text.Len()+a.reasoning.Len()+len(a.calls) == 0:
		delta = message
	}
	if err := a.delta(delta); err != nil || word == "" && !whole {
		return err
	}
	why, err := cutOf(word, a.from.client.redact)
	if err != nil && len(refusalOf(e.raw).words) > 0 {
		return a.from.failure(e.raw)
	}
	a.finished, a.out.Cut = true, cmp.Or(a.out.Cut, why)
	return err
}

// deltaMembers are the members of a delta that say something.
var deltaMembers = []string{"content", "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content", "reasoning_details"}

func (a *chatAnswer) usage(v value) {
	if u := v.usage(); u != nil {
		a.out.Usage = u
	}
}

// delta adds a delta, which some servers write as its content alone.
func (a *chatAnswer) delta(d value) error {
	content := d.at("content")
	switch {
	case d.kind() == '"':
		content = d
	case !content.has():
		content = d.at("refusal")
	}
	text, thinking := "", ""
	switch content.kind() {
	case '"', '0':
		text = a.text.add(content)
	case '[', '{': // Mistral's list of parts
		text, thinking = content.content()
		a.text.WriteString(text)
	}
	if piece := a.think(d, thinking); piece != "" {
		a.from.emit(protocol.AgentReasoningRawContentDelta{Delta: piece})
	}
	if text != "" {
		a.from.emit(protocol.AgentMessageDelta{Delta: text})
	}
	calls := d.at("tool_calls").list()
	if only := d.at("function_call"); only.has() { // the one call of an answer, before there were several
		calls = append(calls, only)
	}
	for _, c := range calls {
		if a.calls.add(c); len(a.calls) > maxCalls {
			return tooMuch("it", maxCalls, "tool calls")
		}
	}
	return nil
}

// think adds a piece of reasoning and returns it. Some servers send several members with the same text.
func (a *chatAnswer) think(d value, thinking string) (piece string) {
	a.details.add(d.at("reasoning_details").all)
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
		v := d.at(name)
		if !v.has() {
			continue
		}
		if v.kind() == '"' {
			piece = a.reasoning.add(v)
		} else {
			text, more := v.content()
			piece = text + more
			a.reasoning.WriteString(piece)
		}
		if piece != "" || len(a.reasoning.half) > 0 {
			by := byReasoning
			if name == "reasoning_content" {
				by = byReasoningContent
			}
			a.member = cmp.Or(a.member, by)
			return piece
		}
	}
	a.reasoning.WriteString(thinking)
	return thinking
}

// end adds the items of the response.
func (a *chatAnswer) end() error {
	r := a.out
	if thoughts := a.reasoning.end(); thoughts != "" {
		r.Items = append(r.Items, protocol.ReasoningItem{
			Summary: []protocol.ReasoningText{},
			Content: []protocol.ReasoningText{{Type: cmp.Or(a.member, byReasoning), Text: thoughts}},
		})
	}
	if text := a.text.end(); text != "" {
		r.Items = append(r.Items, assistantMessage(text))
	}
	calls, own, signed := len(r.Items), protocol.ReasoningItem{Summary: []protocol.ReasoningText{}}, false
	for _, c := range a.calls {
		items, added := addOnce(r.Items, protocol.FunctionCallItem{Name: c.name, Arguments: argumentsOf(c.arguments.end()), CallID: c.id})
		if !added {
			continue
		}
		if len(own.Content) == 0 {
			c.signs.ReasoningDetails = a.details.ReasoningDetails
		}
		text, err := json.Marshal(c.signs, lenient(), json.Deterministic(true))
		if err != nil {
			return err
		}
		r.Items, signed = items, signed || len(text) > len("{}")
		own.Content = append(own.Content, protocol.ReasoningText{Type: CallSigns, Text: string(text)})
	}
	if signed {
		r.Items = slices.Insert(r.Items, calls, protocol.ResponseItem(own))
	}
	return nil
}

func assistantMessage(text string) protocol.MessageItem {
	return protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: text}}}
}
