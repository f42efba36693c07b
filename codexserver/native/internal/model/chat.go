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
type chatWire struct {
	form
	provider string // its name
}

func (chatWire) path() string                  { return chatPath }
func (chatWire) headers(http.Header, *Request) {}

func (chatWire) read(to *attempt) (*Response, error) {
	a := &chatAnswer{from: to, out: &Response{}}
	for e := range to.events {
		if e.done {
			return a.out, a.end()
		}
		err := a.event(e)
		if err == nil {
			err = to.held.says(a.size())
		}
		if err != nil {
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
// provider wants back with the message or the calls that follow the item, a text for each call, or one for a message without.
const CallSigns = "tool_call_signs"

// signs is such a text as JSON.
type signs struct {
	ExtraContent     jsontext.Value `json:"extra_content,omitzero"`
	ThoughtSignature jsontext.Value `json:"thought_signature,omitzero"` // Gemini behind Portkey's gateway
	// ReasoningDetails are OpenRouter's, in files of before Message, which has them now.
	ReasoningDetails jsontext.Value `json:"reasoning_details,omitzero"`
	// Message is what the message had beside, with its first call, Call and Function what this call had.
	Message  jsontext.Value `json:"message,omitzero"`
	Call     jsontext.Value `json:"call,omitzero"`
	Function jsontext.Value `json:"function,omitzero"`
	// Provider and Model said it: no other ones get it. Both are missing in older files.
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
}

// chatAnswer collects the pieces of an answer.
type chatAnswer struct {
	from            *attempt
	out             *Response
	text, reasoning pieces
	member          string // of the first piece of reasoning
	beside          beside
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
	a.beside.add(delta, knownOfMessages)
	switch {
	case delta.kind() == '"', slices.ContainsFunc(deltaMembers, func(name string) bool { return delta.at(name).has() }):
	case !message.has():
		delta = choice.at("text") // as completions had it before chats
	case a.text.Len()+a.reasoning.Len()+len(a.calls) == 0:
		delta = message
		a.beside.add(message, knownOfMessages)
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

// size returns how many bytes the answer says so far.
func (a *chatAnswer) size() int {
	n := a.text.Len() + a.reasoning.Len() + a.beside.size
	for _, c := range a.calls {
		n += len(c.id) + len(c.name) + c.arguments.Len() + c.beside.size + c.function.size
	}
	return n
}

// deltaMembers are the members of a delta that say something.
var deltaMembers = []string{"content", "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content",
	"reasoning_details"}

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
	calls, own := len(r.Items), protocol.ReasoningItem{Summary: []protocol.ReasoningText{}}
	signed := signs{Message: a.beside.json()}
	for _, c := range a.calls {
		items, added := addOnce(r.Items, protocol.FunctionCallItem{Name: c.name,
			Arguments: argumentsOf(c.arguments.end()), CallID: c.id})
		if !added {
			continue
		}
		signed.ExtraContent, signed.ThoughtSignature = c.signs.ExtraContent, c.signs.ThoughtSignature
		signed.Call, signed.Function = c.beside.json(), c.function.json()
		r.Items, own.Content = items, append(own.Content, a.sign(signed))
		signed = signs{}
	}
	if len(r.Items) == calls && calls > 0 { // before the message, which has no calls
		calls--
		own.Content = append(own.Content, a.sign(signed))
	}
	if slices.ContainsFunc(own.Content, func(one protocol.ReasoningText) bool { return one.Text != noSigns }) {
		r.Items = slices.Insert(r.Items, calls, protocol.ResponseItem(own))
	}
	return nil
}

// noSigns are those of a call without any.
const noSigns = "{}"

// sign returns signs as a text, with whom they are for.
func (a *chatAnswer) sign(s signs) protocol.ReasoningText {
	out, err := json.Marshal(s, lenient(), json.Deterministic(true))
	if err == nil && string(out) != noSigns {
		s.Provider, s.Model = a.from.client.Name, a.from.req.Model
		out, err = json.Marshal(s, lenient(), json.Deterministic(true))
	}
	if err != nil { // a provider's JSON that cannot be kept
		out = []byte(noSigns)
	}
	return protocol.ReasoningText{Type: CallSigns, Text: string(out)}
}

func assistantMessage(text string) protocol.MessageItem {
	return protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: text}}}
}
