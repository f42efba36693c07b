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
	// OutputSchema is the JSON schema of the answer, sent unchanged. Nil allows any form.
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
}

// EventType is the type of an [Event].
type EventType int

// The events of a stream.
const (
	// TextDelta is a piece of the answer's text, in Text.
	TextDelta EventType = iota + 1
	// ReasoningDelta is a piece of a reasoning summary, in Text.
	ReasoningDelta
	// RawReasoningDelta is a piece of the reasoning itself, in Text.
	RawReasoningDelta
	// ReasoningSection begins another part of the reasoning summary.
	ReasoningSection
	// ItemDone has a whole Item, on the Responses wire.
	ItemDone
	// RateLimitsRead has the RateLimits of the response's headers, on the Responses wire.
	RateLimitsRead
	// WebSearchStarted has the search's CallID.
	WebSearchStarted
	// LeftOut says, in Text, what the model refused: this request and later ones lack it.
	LeftOut
)

// Event is something that happens while a response arrives.
type Event struct {
	Type       EventType
	Text       string
	CallID     string
	Item       protocol.ResponseItem
	RateLimits *protocol.RateLimits
}
