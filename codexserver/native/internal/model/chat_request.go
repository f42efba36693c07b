package model

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatBody is a request. It requests the usage, which providers do not send by default. It has one
// system message, and no two messages of the same role in a row: the templates of many models take no
// others.
type chatBody struct {
	Model           string                   `json:"model"`
	Messages        []chatMessage            `json:"messages"`
	Stream          bool                     `json:"stream"`
	StreamOptions   map[string]bool          `json:"stream_options,omitempty"`
	Tools           []chatTool               `json:"tools,omitempty"`
	ToolChoice      string                   `json:"tool_choice,omitzero"`
	ReasoningEffort protocol.ReasoningEffort `json:"reasoning_effort,omitzero"`
	ResponseFormat  *chatFormat              `json:"response_format,omitzero"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function functionTool `json:"function"`
}

type chatFormat struct {
	Type       string       `json:"type"`
	JSONSchema schemaFormat `json:"json_schema"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          any        `json:"content"` // of the parts
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitzero"`
	Name             string     `json:"name,omitzero"` // of the tool
	Reasoning        *string    `json:"reasoning,omitzero"`
	ReasoningContent *string    `json:"reasoning_content,omitzero"`

	Beside jsontext.Value `json:",embed"`

	parts   []protocol.ContentItem
	thought string // the reasoning of its response
	details bool   // which Beside has as reasoning_details
}

type chatCall struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Function     chatFunction   `json:"function"`
	ExtraContent jsontext.Value `json:"extra_content,omitzero"`
	Beside       jsontext.Value `json:",embed"`
}

type chatFunction struct {
	Name             string         `json:"name"`
	Arguments        string         `json:"arguments"`
	ThoughtSignature jsontext.Value `json:"thought_signature,omitzero"`
	Beside           jsontext.Value `json:",embed"`
}

type chatPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitzero"`
	ImageURL map[string]string `json:"image_url,omitempty"`
}

func (w chatWire) body(req *Request) ([]byte, error) {
	first, items := w.history(req)
	m := chatMessages{provider: w.provider, model: req.Model}
	if !w.has(reasoning) {
		m.member = reasoningMember(items)
	}
	m.all = make([]chatMessage, 0, len(items)+1)
	if first != "" {
		role := "system"
		if w.has(systemRole) {
			role = "user"
		}
		m.message(role, []protocol.ContentItem{{Text: first}})
	}
	for _, item := range items {
		m.add(item)
	}
	for i := range m.all {
		m.all[i].Content = w.content(&m.all[i])
	}
	if w.has(outputNames) {
		m.nameOutputs()
	}
	if w.has(signatures) {
		m.signCalls()
	}
	body := chatBody{Model: req.Model, Messages: m.all, Stream: !w.has(noStream)}
	if !w.has(usageOption | noStream) {
		body.StreamOptions = map[string]bool{"include_usage": true}
	}
	tools, forbidden := w.toolsOf(req, w.has(noToolChoice))
	for _, t := range tools {
		if t.Type == "" || t.Type == "function" {
			body.Tools = append(body.Tools, chatTool{Type: "function", Function: *w.function(t)})
		}
	}
	if forbidden && body.Tools != nil {
		body.ToolChoice = "none"
	}
	if !w.has(effort) {
		body.ReasoningEffort = req.Effort
	}
	if w.holds(req) {
		body.ResponseFormat = &chatFormat{Type: "json_schema", JSONSchema: formatOf(req)}
	}
	return json.Marshal(body, lenient())
}

// chatMessages are the messages of a request.
type chatMessages struct {
	all     []chatMessage
	member  string   // of a message with calls that has its reasoning, or ""
	thought string   // the reasoning of the response that comes next
	signs   []string // of the calls that come next, or of the message

	provider, model string // who gets the request
}

// nameOutputs gives the output of each call the name of its tool.
func (m *chatMessages) nameOutputs() {
	names := map[string]string{}
	for i := range m.all {
		for _, call := range m.all[i].ToolCalls {
			names[call.ID] = call.Function.Name
		}
		m.all[i].Name = names[m.all[i].ToolCallID]
	}
}

// noSignature is Gemini's word for a call that another model made.
const noSignature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// signCalls gives the first call of each message a signature that says that it has none, unless it has one.
func (m *chatMessages) signCalls() {
	for _, message := range m.all {
		if len(message.ToolCalls) == 0 {
			continue
		}
		if first := &message.ToolCalls[0]; first.ExtraContent == nil && first.Function.ThoughtSignature == nil {
			first.ExtraContent = jsontext.Value(noSignature)
		}
	}
}

// reasoningMember returns the member in which the provider sent the reasoning of this
// history, or "" if it sent none.
func reasoningMember(items []protocol.ResponseItem) string {
	for _, item := range slices.Backward(items) {
		if r, ok := item.(protocol.ReasoningItem); ok && len(r.Content) > 0 && !isSigns(r) {
			if r.Content[0].Type == byReasoning {
				return "reasoning"
			}
			return "reasoning_content"
		}
	}
	return ""
}

// isSigns reports whether an item has the signs of the calls after it.
func isSigns(item protocol.ResponseItem) bool {
	r, ok := item.(protocol.ReasoningItem)
	return ok && len(r.Content) > 0 && r.Content[0].Type == CallSigns
}

// last returns the last message if it has that role and no calls, nil otherwise.
func (m *chatMessages) last(role string) *chatMessage {
	if n := len(m.all) - 1; n >= 0 && m.all[n].Role == role && len(m.all[n].ToolCalls) == 0 {
		return &m.all[n]
	}
	return nil
}

// message adds a message, or goes on with the last one.
func (m *chatMessages) message(role string, parts []protocol.ContentItem) *chatMessage {
	last := m.last(role)
	if last == nil || role == "tool" {
		m.all = append(m.all, chatMessage{Role: role})
		last = &m.all[len(m.all)-1]
		if role == "assistant" {
			last.thought = m.thought
		}
		m.thought = ""
	}
	if role == "assistant" && parts != nil {
		last.add(m.next())
	}
	m.signs, last.parts = nil, joinParts(last.parts, parts)
	return last
}

// add writes an item in the form of this wire. It drops items that the wire does not have.
func (m *chatMessages) add(item protocol.ResponseItem) {
	switch item := item.(type) {
	case protocol.ReasoningItem:
		to := &m.thought // it begins a response
		if last := m.last("assistant"); last != nil {
			to = &last.thought
		}
		m.signs = nil
		for _, part := range item.Content {
			if isSigns(item) {
				m.signs = append(m.signs, part.Text)
			} else {
				*to += part.Text
			}
		}
	case protocol.MessageItem:
		m.message(item.Role, item.Content)
	default:
		if call, ok := CallOf(item); ok { // also from a conversation that began on the other wire
			m.call(call.Function())
		} else if answer, ok := AnswerOf(item); ok {
			m.message("tool", []protocol.ContentItem{{Text: answer.Output}}).ToolCallID = answer.CallID
		}
	}
}

// call adds a call to the message of the assistant before it, if any.
func (m *chatMessages) call(call protocol.FunctionCallItem) {
	own := m.next()
	n := len(m.all) - 1
	if n < 0 || m.all[n].Role != "assistant" || m.thought != "" {
		left := m.signs
		m.message("assistant", nil)
		m.signs, n = left, len(m.all)-1
	}
	to := &m.all[n]
	to.add(own)
	switch { // DeepSeek and Kimi refuse a call without it, even if it is empty
	case to.details:
	case m.member == "reasoning":
		to.Reasoning = &to.thought
	case m.member == "reasoning_content":
		to.ReasoningContent = &to.thought
	}
	to.ToolCalls = append(to.ToolCalls, chatCall{
		ID: call.CallID, Type: "function", ExtraContent: own.ExtraContent, Beside: allowed(own.Call, knownOfCalls),
		Function: chatFunction{
			Name: call.Name, Arguments: call.Arguments,
			ThoughtSignature: own.ThoughtSignature, Beside: allowed(own.Function, knownOfFunctions),
		},
	})
}

// next returns the next of the signs, if they are for who gets the request.
func (m *chatMessages) next() (own signs) {
	if len(m.signs) == 0 {
		return own
	}
	text := m.signs[0]
	m.signs = m.signs[1:]
	if err := json.Unmarshal([]byte(text), &own, lenient()); err != nil { // a file that was changed
		return signs{}
	}
	if own.Provider+own.Model != "" && (own.Provider != m.provider || own.Model != m.model) {
		return signs{}
	}
	return own
}

// add adds what the message had beside, unless it is there.
func (m *chatMessage) add(own signs) {
	if own.Message == nil && own.ReasoningDetails != nil {
		own.Message = slices.Concat(jsontext.Value(`{"reasoning_details":`), own.ReasoningDetails, jsontext.Value("}"))
	}
	if m.Beside == nil {
		m.Beside = allowed(own.Message, knownOfMessages)
		m.details = parse(m.Beside).at("reasoning_details").has()
	}
}

// noContent is the content of a message without one, for providers that want some.
const noContent = "."

// content returns the content of a message: one text if there are only texts, null for none beside calls.
func (w chatWire) content(m *chatMessage) any {
	if len(m.parts) == 0 && len(m.ToolCalls) > 0 && !w.has(nullContent) {
		return nil
	}
	if !slices.ContainsFunc(m.parts, isImage) {
		text := Text(m.parts)
		if strings.TrimSpace(text) == "" && w.has(emptyContent) {
			text = noContent
		}
		return text
	}
	var parts []chatPart
	for _, p := range m.parts {
		switch last := len(parts) - 1; {
		case !isImage(p) && strings.TrimSpace(p.Text) == "" && w.has(emptyContent):
		case isImage(p):
			parts = append(parts, chatPart{Type: "image_url", ImageURL: map[string]string{"url": p.ImageURL}})
		case last >= 0 && parts[last].ImageURL == nil:
			parts[last].Text += p.Text
		default:
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		}
	}
	return parts
}
