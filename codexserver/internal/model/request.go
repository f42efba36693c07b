package model

import (
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Request is what a model is asked.
type Request struct {
	Model        string
	Instructions string
	// Items are the whole history.
	Items []protocol.ResponseItem
	Tools []Tool
	// Reasoning is nil for models without.
	Reasoning *Reasoning
	// Effort is named on the Chat wire, where it is not "". Reasoning has that of the
	// Responses wire.
	Effort protocol.ReasoningEffort
	// Verbosity is "low", "medium", "high" or "".
	Verbosity string
	// OutputSchema is the JSON schema of the answer, handed on as it is; nil leaves
	// its form open.
	OutputSchema stdjson.RawMessage
	// ConversationID ties requests together for the provider's cache.
	ConversationID string
}

// Reasoning says how a model should think.
type Reasoning struct {
	Effort  protocol.ReasoningEffort  `json:"effort,omitzero"`
	Summary protocol.ReasoningSummary `json:"summary,omitzero"`
}

// Tool is a tool as the model sees it.
type Tool struct {
	// Type is "function" when it is empty. Other types, such as "web_search",
	// are the provider's own, have no other field but their settings, and exist
	// on the Responses wire alone.
	Type        string
	Name        string
	Description string
	// Parameters is the JSON schema of a function's arguments.
	Parameters stdjson.RawMessage
	// WebSearch says how a "web_search" searches; nil leaves it to the provider.
	WebSearch *WebSearch
}

// WebSearch are the settings of the tool "web_search", as the Responses wire has
// them.
type WebSearch struct {
	// ExternalWebAccess is false for a search of the provider's index alone.
	ExternalWebAccess *bool `json:"external_web_access,omitzero"`
	// SearchContextSize is "low", "medium" or "high".
	SearchContextSize string `json:"search_context_size,omitzero"`
	// Filters narrow the search down.
	Filters *WebSearchFilters `json:"filters,omitzero"`
	// UserLocation is where the user is about.
	UserLocation *UserLocation `json:"user_location,omitzero"`
}

// UserLocation is a place, as far as it is known.
type UserLocation struct {
	// Type is "approximate".
	Type string `json:"type"`
	// Country, Region, City and Timezone are as the provider documents them.
	Country  string `json:"country,omitzero"`
	Region   string `json:"region,omitzero"`
	City     string `json:"city,omitzero"`
	Timezone string `json:"timezone,omitzero"`
}

// WebSearchFilters narrow a web search down.
type WebSearchFilters struct {
	// AllowedDomains are the only ones to search.
	AllowedDomains []string `json:"allowed_domains"`
}

// Response is a whole answer.
type Response struct {
	// Items are the answer's messages, reasoning and calls in their order.
	Items []protocol.ResponseItem
	// Usage is nil when the provider did not report it.
	Usage *protocol.TokenUsage
}

// schemaName is what the schema of an answer is called; providers want a name.
const schemaName = "codex_output_schema"

// EventType says what an [Event] is about.
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
	// ItemDone brings a whole Item, on the Responses wire.
	ItemDone
	// RateLimitsRead brings the RateLimits of the response's headers, on the
	// Responses wire.
	RateLimitsRead
	// WebSearchStarted names the search's CallID.
	WebSearchStarted
)

// Event is something that happens while a response arrives.
type Event struct {
	Type       EventType
	Text       string
	CallID     string
	Item       protocol.ResponseItem
	RateLimits *protocol.RateLimits
}
