package model

import (
	"bytes"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The bodies of requests are written without a JSON encoder: they have the whole history,
// and each pass over it takes as long as the request itself.

// body writes the request. It requests the usage, which providers do not send by default. It has one
// system message, and no two messages of the same role in a row: the templates of many models take no
// others.
func (w chatWire) body(req *Request) ([]byte, error) {
	m := &chatMessages{b: make([]byte, 0, sizeOf(req)), form: w.form}
	m.b = appendString(append(m.b, `{"model":`...), req.Model)
	m.b = append(m.b, `,"messages":[`...)
	if text := w.instructions(req, systemText(req)); text != "" {
		role := "system"
		if w.has(systemRole) {
			role = "user"
		}
		m.begin(role)
		m.parts = append(m.parts, protocol.ContentItem{Text: text})
	}
	if !w.has(reasoning) {
		m.member = reasoningMember(req.Items)
	}
	for _, item := range w.withIDs(req.Items) {
		if w.has(signsOfCalls) && isSigns(item) {
			continue
		}
		if err := m.add(item); err != nil {
			return nil, err
		}
	}
	m.end()
	b := append(m.b, `],"stream":true`...)
	if !w.has(usageOption) {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	var tools []chatTool
	for _, t := range w.offered(req.Tools) {
		if t.Type == "" || t.Type == "function" {
			tool := chatToolFunction{Name: t.Name, Description: t.Description, Parameters: w.schema(t)}
			if !w.has(strictMember) {
				tool.Strict = new(false)
			}
			tools = append(tools, chatTool{Type: "function", Function: tool})
		}
	}
	if len(tools) > 0 {
		body := bytes.NewBuffer(append(b, `,"tools":`...))
		if err := json.MarshalWrite(body, tools, jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, err
		}
		b = body.Bytes()
	}
	if req.Effort != "" && !w.has(effort) {
		b = appendString(append(b, `,"reasoning_effort":`...), string(req.Effort))
	}
	if req.OutputSchema != nil && !w.has(answerSchema) {
		b = appendString(append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":`...), schemaName)
		b = append(append(append(b, `,"strict":true,"schema":`...), req.OutputSchema...), "}}"...)
	}
	return append(b, '}'), nil
}

// systemText returns the text of the system message: the instructions, and the messages with which a
// caller adds to them.
func systemText(req *Request) string {
	text := req.Instructions
	for _, item := range req.Items {
		if m, ok := item.(protocol.MessageItem); ok && isSystem(m.Role) {
			text = join(text, textsOf(m.Content))
		}
	}
	return text
}

func isSystem(role string) bool { return role == "developer" || role == "system" }

// join returns two texts with an empty line between them.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

func textsOf(parts []protocol.ContentItem) string {
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	return text.String()
}

type chatTool struct {
	Type     string           `json:"type"`
	Function chatToolFunction `json:"function"`
}

type chatToolFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Strict      *bool          `json:"strict,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
}

// chatMessages writes messages one after another.
type chatMessages struct {
	form  form
	b     []byte
	last  string                 // the role of the message that was written last
	role  string                 // of the open message, or ""
	parts []protocol.ContentItem // of the open message
	calls int                    // in the open message, whose content is written then

	member    string // of a message with calls that has its reasoning, or ""
	reasoning string // of the response whose message comes next or is open

	signs []string // of the calls that come next
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

func hasSigns(items []protocol.ResponseItem) bool { return slices.ContainsFunc(items, isSigns) }

// betweenToolAndUser is the message of the assistant for providers that want one.
const betweenToolAndUser = "I have read the result."

// noContent is the content of a message without one, for providers that want some.
const noContent = "."

// begin begins a message, or goes on with the open one.
func (m *chatMessages) begin(role string) {
	m.signs = nil
	if role == m.role && m.calls == 0 && role != "tool" {
		return
	}
	m.end()
	if role != "assistant" {
		m.reasoning = ""
	}
	if role == "user" && m.last == "tool" && m.form.has(userAfterTool) {
		m.role, m.parts = "assistant", []protocol.ContentItem{{Text: betweenToolAndUser}}
		m.end()
	}
	m.role, m.calls = role, 0
}

// head writes the open message up to its content, null for none where calls follow.
func (m *chatMessages) head(calls bool) {
	if m.last != "" {
		m.b = append(m.b, ',')
	}
	m.last = m.role
	m.b = append(appendString(append(m.b, `{"role":`...), m.role), `,"content":`...)
	if calls && len(m.parts) == 0 && !m.form.has(nullContent) {
		m.b = append(m.b, "null"...)
		return
	}
	m.content()
}

// end ends the open message, if any.
func (m *chatMessages) end() {
	if m.role == "" {
		return
	}
	if m.calls == 0 {
		m.head(false)
	} else {
		m.b = append(m.b, ']')
		if m.member != "" {
			// DeepSeek and Kimi refuse a call without the member, even if it is empty.
			m.b = appendString(append(appendString(append(m.b, ','), m.member), ':'), m.reasoning)
		}
	}
	m.b = append(m.b, '}')
	m.role, m.reasoning, m.parts, m.calls = "", "", m.parts[:0], 0
}

// add writes an item in the form of this wire. It drops items that the wire does not have.
func (m *chatMessages) add(item protocol.ResponseItem) error {
	switch item := item.(type) {
	case protocol.ReasoningItem:
		m.signs = nil
		if isSigns(item) {
			for _, part := range item.Content {
				m.signs = append(m.signs, part.Text)
			}
			return nil
		}
		if m.role != "assistant" || m.calls > 0 {
			m.end() // it begins a response
		}
		for _, part := range item.Content {
			m.reasoning += part.Text
		}
	case protocol.MessageItem:
		if isSystem(item.Role) { // it is in the first message
			return nil
		}
		m.begin(item.Role)
		m.addParts(item.Content)
	case protocol.FunctionCallItem:
		m.call(item.CallID, item.Name, item.Arguments)
	case protocol.FunctionCallOutputItem:
		m.output(item.CallID, item.Output)
	case protocol.CustomToolCallItem: // from a conversation that began on the other wire
		arguments, err := json.Marshal(map[string]string{"input": item.Input}, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		m.call(item.CallID, item.Name, string(arguments))
	case protocol.CustomToolCallOutputItem:
		m.output(item.CallID, item.Output)
	case protocol.LocalShellCallItem:
		arguments, err := json.Marshal(map[string][]string{"command": item.Action.Command}, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		m.call(item.CallID, "shell", string(arguments))
	}
	return nil
}

// call adds a call to the message of the assistant before it, if any.
func (m *chatMessages) call(id, name, arguments string) {
	if m.role != "assistant" {
		own := m.signs
		m.begin("assistant")
		m.signs = own
	}
	if m.calls == 0 {
		m.head(true)
		m.b = append(m.b, `,"tool_calls":[`...)
	} else {
		m.b = append(m.b, ',')
	}
	m.calls++
	m.b = appendString(append(m.b, `{"id":`...), id)
	m.b = appendString(append(m.b, `,"type":"function","function":{"name":`...), name)
	m.b = appendString(append(m.b, `,"arguments":`...), arguments)
	var own signs
	if len(m.signs) > 0 {
		_ = json.Unmarshal([]byte(m.signs[0]), &own, lenient) // a file that was changed has none
		m.signs = m.signs[1:]
	}
	if len(own.ThoughtSignature) > 0 {
		m.b = append(append(m.b, `,"thought_signature":`...), own.ThoughtSignature...)
	}
	m.b = append(m.b, '}')
	if len(own.ExtraContent) > 0 {
		m.b = append(append(m.b, `,"extra_content":`...), own.ExtraContent...)
	}
	m.b = append(m.b, '}')
}

func (m *chatMessages) output(callID, text string) {
	m.begin("tool")
	m.parts = append(m.parts, protocol.ContentItem{Text: text})
	m.head(false)
	m.b = append(appendString(append(m.b, `,"tool_call_id":`...), callID), '}')
	m.role, m.parts = "", m.parts[:0]
}

// addParts adds parts to the open message. Texts become one.
func (m *chatMessages) addParts(parts []protocol.ContentItem) {
	if last := len(m.parts) - 1; last >= 0 && !isImage(m.parts[last]) && !slices.ContainsFunc(parts, isImage) {
		m.parts[last].Text = join(m.parts[last].Text, textsOf(parts))
		return
	}
	if !slices.ContainsFunc(parts, isImage) && len(parts) > 1 {
		parts = []protocol.ContentItem{{Text: textsOf(parts)}}
	}
	m.parts = append(m.parts, parts...)
}

// content writes one string if there are only texts.
func (m *chatMessages) content() {
	if !slices.ContainsFunc(m.parts, isImage) {
		text := textsOf(m.parts)
		if text == "" && m.form.has(emptyContent) {
			text = noContent
		}
		m.b = appendString(m.b, text)
		return
	}
	m.b = append(m.b, '[')
	for i, p := range m.parts {
		if i > 0 {
			m.b = append(m.b, ',')
		}
		if isImage(p) {
			m.b = appendString(append(m.b, `{"type":"image_url","image_url":{"url":`...), p.ImageURL)
			m.b = append(m.b, "}}"...)
		} else {
			m.b = appendString(append(m.b, `{"type":"text","text":`...), p.Text)
			m.b = append(m.b, '}')
		}
	}
	m.b = append(m.b, ']')
}

// appendString appends s as a JSON string. Invalid UTF-8 is replaced.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// sizeOf returns about how long a request will be, so that its buffer is allocated once.
func sizeOf(req *Request) int {
	n := 4096 + len(req.Instructions)
	for _, t := range req.Tools {
		n += len(t.Description) + len(t.Parameters) + 128
	}
	for _, item := range req.Items {
		n += 160
		switch item := item.(type) {
		case protocol.MessageItem:
			for _, c := range item.Content {
				n += len(c.Text) + len(c.ImageURL) + 32
			}
		case protocol.ReasoningItem:
			for _, part := range item.Content {
				n += len(part.Text)
			}
		case protocol.FunctionCallItem:
			n += len(item.Arguments)
		case protocol.FunctionCallOutputItem:
			n += len(item.Output)
		case protocol.RawItem:
			n += len(item.Raw)
		}
	}
	return n + n/8 // room for escapes
}
