package model

import (
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Request is a request to a model.
type Request struct {
	Model        string
	Instructions string
	// Items are the whole history.
	Items []protocol.ResponseItem
	Tools []Tool
	// NoCalls forbids to call the tools. They are sent all the same: some providers refuse a history with calls without them.
	// Ignored says that the model has called one all the same: its server does not know how to forbid it, so there are none.
	NoCalls, Ignored bool
	// Reasoning is nil for models without reasoning.
	Reasoning *Reasoning
	// Effort is sent on the Chat wire unless it is "". Reasoning has the effort for the
	// Responses wire.
	Effort protocol.ReasoningEffort
	// SeveralCalls lets an answer call several tools, on the Responses wire. On the Chat wire
	// the provider decides.
	SeveralCalls bool
	// Verbosity is "low", "medium", "high" or "".
	Verbosity string
	// OutputSchema is the JSON schema of the answer, nil for any form. The instructions have it as words. With NoCalls the
	// model is held to it, and it is sent unchanged.
	OutputSchema stdjson.RawMessage
	// ConversationID identifies requests of one conversation for the provider's cache.
	ConversationID string
}

// Reasoning says how a model should think.
type Reasoning struct {
	Effort  protocol.ReasoningEffort  `json:"effort,omitzero"`
	Summary protocol.ReasoningSummary `json:"summary,omitzero"`
}

// Tool is a tool as the model sees it.
type Tool struct {
	// Type is "function" by default. Other types, such as "web_search", are built into the
	// provider. They have only settings, and exist only on the Responses wire.
	Type        string
	Name        string
	Description string
	// Parameters is the JSON schema of a function's arguments.
	Parameters stdjson.RawMessage
	// Foreign is true for a tool of an MCP server. It is left out when the provider refuses its schema.
	Foreign bool
	// Settings are the members of a tool of the provider besides its type.
	Settings map[string]any
}

// Response is a whole response.
type Response struct {
	// Items are the messages, reasoning and calls in order.
	Items []protocol.ResponseItem
	// Usage is nil if the provider did not report it.
	Usage *protocol.TokenUsage
	// Cut is why the provider ended the response early. "" is a whole one.
	Cut Cut
	// Free gives back the room that the response takes. It is called once the response has been read.
	Free func()
}

// ItemDone has a whole item of a response, on the Responses wire. Clients do not get it.
type ItemDone struct{ Item protocol.ResponseItem }

// EventType implements [protocol.EventMsg].
func (ItemDone) EventType() string { return "item_done" }
