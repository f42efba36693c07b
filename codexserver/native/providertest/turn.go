package providertest

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Turn is one response of the model. Its zero value is an answer without text.
type Turn struct {
	// Match takes this turn for requests alone whose body contains it.
	Match string
	// Repeat keeps the turn in the script after it was used.
	Repeat bool
	// Func, when it is not nil, makes the turn from the request; the other
	// fields but Match and Repeat are then ignored.
	Func func(Request) Turn

	// Text is the answer, in the pieces in which it is streamed.
	Text []string
	// Reasoning is what the model thinks, in pieces: the summary on the
	// Responses wire, the reasoning itself on the Chat wire.
	Reasoning []string
	// RawReasoning is the reasoning itself on the Responses wire.
	RawReasoning []string
	// ToolCalls are made after the text.
	ToolCalls []ToolCall
	// Usage is what the model counts; nil counts 10 tokens in, 5 out.
	Usage *Usage
	// NoUsage reports no usage at all.
	NoUsage bool

	// Wait holds the response back until it is closed.
	Wait <-chan struct{}
	// Stall holds the stream open between the text and what follows it, until
	// it is closed.
	Stall <-chan struct{}
	// Truncate breaks off after the text, before the tool calls and the end.
	Truncate bool
	// TruncateAt breaks off after that many bytes; 0 = never.
	TruncateAt int
	// Failed ends a response of the Responses wire with this error.
	Failed *Failure

	// Status, when it is neither 0 nor 200, answers with Body instead of a stream.
	Status int
	// Body is the answer's with Status, or else replaces the whole stream when
	// it is not empty.
	Body string
	// Header is added to the answer's.
	Header http.Header
}

// Say is a turn that says text.
func Say(text string) Turn { return Turn{Text: []string{text}} }

// Call is a turn that calls tools.
func Call(calls ...ToolCall) Turn { return Turn{ToolCalls: calls} }

// ToolCall is a call of a tool.
type ToolCall struct {
	// ID is the call's; "" makes "call_0", "call_1", …
	ID string
	// Name is the tool's.
	Name string
	// Arguments is JSON text, or whatever a model would write in its place.
	Arguments string
	// Custom calls a tool that takes Arguments as free text (Responses wire).
	Custom bool
	// Type, when it is not "", is the item type of a provider's own tool, such
	// as "local_shell_call" or "web_search_call"; Arguments is then the item's
	// action as JSON (Responses wire).
	Type string
}

// Shell is a call of the shell tool.
func Shell(id string, argv ...string) ToolCall {
	return Tool(id, "shell", map[string]any{"command": argv})
}

// Tool is a call of a function with arguments that marshal to JSON; those that
// do not are left out.
func Tool(id, name string, arguments any) ToolCall {
	text, err := json.Marshal(arguments, json.Deterministic(true))
	if err != nil {
		text = nil
	}
	return ToolCall{ID: id, Name: name, Arguments: string(text)}
}

// Usage counts tokens: Input with the Cached ones, Output with the Reasoning,
// and the Total that the provider states.
type Usage struct {
	Input, Cached, Output, Reasoning, Total int64
}

// Failure is an error at the end of a response.
type Failure struct {
	// Code is the provider's word, such as "rate_limit_exceeded".
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
}
