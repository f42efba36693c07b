package protocol

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ResponseItem is an entry of a conversation's history in the form of the Responses API:
// one of the item types of this package, or a [RawItem] of an unknown type. Rollouts keep
// items in this form, whatever API the model has.
type ResponseItem interface {
	// ItemType is the item's type on the wire, such as "function_call".
	ItemType() string
}

// MessageItem is a message of the user, of the assistant or of a developer: the parts Content.
type MessageItem struct {
	// Role is "user", "assistant", "developer" or "system".
	Role    string        `json:"role"`
	Content []ContentItem `json:"content"`
	// Phase is what the provider calls an assistant's message, such as "commentary" or "final_answer", or "". Models that
	// send one want it back.
	Phase string `json:"phase,omitzero"`
}

// ContentItem is a part of a message. [AppendItem] writes the member that belongs to the type, also without a value.
type ContentItem struct {
	// Type is "input_text", "output_text" or "input_image".
	Type string `json:"type"`
	Text string `json:"text,omitzero"`
	// ImageURL belongs to "input_image", Text to the others; it is often a data URL.
	ImageURL string `json:"image_url,omitzero"`
}

// ReasoningItem is what a reasoning model thought. Only its provider can read the encrypted
// content.
type ReasoningItem struct {
	// Summary is what may be shown.
	Summary []ReasoningText `json:"summary"`
	// Content is the reasoning itself, if the provider sends it.
	Content []ReasoningText `json:"content,omitempty"`
	// EncryptedContent is nil, written as null, when the provider sent none.
	EncryptedContent *string `json:"encrypted_content"`
}

// ReasoningText is a part of a [ReasoningItem], with its Text.
type ReasoningText struct {
	// Type is "summary_text", "reasoning_text" or "text".
	Type string `json:"type"`
	Text string `json:"text"`
}

// FunctionCallItem is a call of the function tool Name. Its output repeats CallID, the model's id.
type FunctionCallItem struct {
	Name string `json:"name"`
	// Arguments is JSON text as the model wrote it, which may not parse.
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
}

// FunctionCallOutputItem answers a [FunctionCallItem] or a [LocalShellCallItem]: Output is what the model reads of the
// call CallID.
type FunctionCallOutputItem struct {
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

// CustomToolCallItem is a call of the tool Name, whose Input is free text. Its output repeats CallID, the model's id.
type CustomToolCallItem struct {
	// Status is the provider's status, such as "completed".
	Status string `json:"status,omitzero"`
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Input  string `json:"input"`
}

// CustomToolCallOutputItem answers a [CustomToolCallItem]: Output is what the model reads of the call CallID.
type CustomToolCallOutputItem struct {
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

// LocalShellCallItem is a command, Action, of a model that was trained with a shell of its own. Its output repeats CallID.
type LocalShellCallItem struct {
	CallID string `json:"call_id,omitzero"`
	// Status is "completed", "in_progress" or "incomplete".
	Status string           `json:"status"`
	Action LocalShellAction `json:"action"`
}

// LocalShellAction is what a [LocalShellCallItem] asks for: to run Command, an argv. The Type is "exec".
type LocalShellAction struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
	// TimeoutMS is in milliseconds; nil leaves it to the engine.
	TimeoutMS *int64 `json:"timeout_ms,omitzero"`
	// WorkingDirectory is the conversation's when nil.
	WorkingDirectory *string `json:"working_directory,omitzero"`
	// Env is the environment that the model wants.
	Env map[string]string `json:"env,omitempty"`
	// User is the user as whom the model wants to run it.
	User *string `json:"user,omitzero"`
}

// RawItem is an item of a Type that this package does not know. It is kept and sent back
// unchanged.
type RawItem struct {
	Type string
	// Raw is the whole object, type included.
	Raw stdjson.RawMessage
}

// ItemType implements [ResponseItem].
func (MessageItem) ItemType() string              { return "message" }
func (ReasoningItem) ItemType() string            { return "reasoning" }
func (FunctionCallItem) ItemType() string         { return "function_call" }
func (FunctionCallOutputItem) ItemType() string   { return "function_call_output" }
func (CustomToolCallItem) ItemType() string       { return "custom_tool_call" }
func (CustomToolCallOutputItem) ItemType() string { return "custom_tool_call_output" }
func (LocalShellCallItem) ItemType() string       { return "local_shell_call" }
func (i RawItem) ItemType() string                { return i.Type }

// AppendItem appends the JSON form of item to b, with the type first. It replaces invalid
// UTF-8 in texts.
func AppendItem(b []byte, item ResponseItem) ([]byte, error) {
	// Messages, calls and outputs are written directly, which is faster: they are most of a
	// history, and each request to a model has the whole history.
	switch item := item.(type) {
	case RawItem:
		return append(b, item.Raw...), nil
	case MessageItem:
		return appendMessage(b, item), nil
	case FunctionCallItem:
		b = appendString(append(b, `{"type":"function_call","name":`...), item.Name)
		b = appendString(append(b, `,"arguments":`...), item.Arguments)
		return append(appendString(append(b, `,"call_id":`...), item.CallID), '}'), nil
	case FunctionCallOutputItem:
		b = appendString(append(b, `{"type":"function_call_output","call_id":`...), item.CallID)
		return append(appendString(append(b, `,"output":`...), item.Output), '}'), nil
	}
	body, err := json.Marshal(item, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return b, fmt.Errorf("protocol: item %s: %w", item.ItemType(), err)
	}
	b = append(b, `{"type":"`...)
	b = append(b, item.ItemType()...) // needs no escape
	b = append(b, `",`...)            // every item has other members
	return append(b, body[1:]...), nil
}

func appendMessage(b []byte, m MessageItem) []byte {
	b = appendString(append(b, `{"type":"message","role":`...), m.Role)
	b = append(b, `,"content":[`...)
	for i, c := range m.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"type":`...), c.Type)
		if c.Type == "input_image" {
			b = appendString(append(b, `,"image_url":`...), c.ImageURL)
		} else {
			b = appendString(append(b, `,"text":`...), c.Text)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if m.Phase != "" {
		b = appendString(append(b, `,"phase":`...), m.Phase)
	}
	return append(b, '}')
}

// appendString appends s as JSON. It writes what code and the output of commands mostly have; [jsontext.AppendQuote], whose
// error only reports bytes that were replaced, would take three times as long.
func appendString(b []byte, s string) []byte {
	whole, from := len(b), 0
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			continue
		}
		switch b = append(b, s[from:i]...); c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b, _ = jsontext.AppendQuote(b[:whole], s)
			return b
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

// items has one of each type that this package knows.
var items = []ResponseItem{
	MessageItem{}, ReasoningItem{}, FunctionCallItem{}, FunctionCallOutputItem{}, CustomToolCallItem{},
	CustomToolCallOutputItem{},
	LocalShellCallItem{},
}

// ParseItem reads the JSON form. An unknown type becomes a [RawItem] that shares
// raw's bytes; unknown members of a known type are ignored.
func ParseItem(raw []byte) (ResponseItem, error) {
	return parse(raw, "item", items, ResponseItem.ItemType,
		func(name string) ResponseItem { return RawItem{name, raw} })
}
