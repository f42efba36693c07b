package providertest

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// Turn is one response of the model. Its zero value is an answer without text.
type Turn struct {
	// Match, if not "", limits the turn to requests whose body contains it.
	Match string
	// Repeat keeps the turn in the script after its use.
	Repeat bool
	// Func, if not nil, makes the turn from the request. Then only Match and Repeat
	// of the other fields count.
	Func func(Request) Turn

	// Text is the answer, in the pieces in which it is streamed.
	Text []string
	// Reasoning is the model's reasoning, in pieces: the summary on the Responses
	// wire, the raw reasoning on the Chat wire.
	Reasoning []string
	// ToolCalls come after the text.
	ToolCalls []ToolCall
	// Usage is the reported usage. Nil means 10 input and 5 output tokens.
	Usage *Usage
	// NoUsage leaves the usage out.
	NoUsage bool

	// Wait delays the response until the channel is closed.
	Wait <-chan struct{}
	// Stall stops the stream after the text until the channel is closed.
	Stall <-chan struct{}
	// Truncate breaks off after the text, before the tool calls and the end.
	Truncate bool
	// TruncateAt breaks off after that many bytes; 0 means never.
	TruncateAt int
	// Cut ends the response early: "length" or "content_filter". The last call has half of
	// its arguments then.
	Cut string
	// Failed ends a response of the Responses wire with this error.
	Failed *Failure

	// Status, if neither 0 nor 200, answers with Body instead of a stream.
	Status int
	// Body is the body of an answer with Status. Without Status, a Body that is not
	// empty replaces the stream.
	Body string
	// Header has further headers of the answer.
	Header http.Header
}

// Say returns a turn with a text.
func Say(text string) Turn { return Turn{Text: []string{text}} }

// Call returns a turn that calls tools.
func Call(calls ...ToolCall) Turn { return Turn{ToolCalls: calls} }

// ToolCall is a call of a tool.
type ToolCall struct {
	// ID is the id of the call; "" makes "call_0", "call_1", …
	ID string
	// Name is the name of the tool.
	Name string
	// Arguments is JSON text, or whatever a model would write in its place.
	Arguments string
}

// Shell returns a call of the shell tool.
func Shell(id string, argv ...string) ToolCall {
	return Tool(id, "shell", map[string]any{"command": argv})
}

// Tool returns a call of a function. It marshals the arguments to JSON, and leaves them
// out when that fails.
func Tool(id, name string, arguments any) ToolCall {
	text, err := json.Marshal(arguments, json.Deterministic(true))
	if err != nil {
		text = nil
	}
	return ToolCall{ID: id, Name: name, Arguments: string(text)}
}

// Usage counts tokens. Input includes Cached, and Output includes Reasoning. Total is what
// the provider states.
type Usage struct {
	Input, Cached, Output, Reasoning, Total int64
}

// Failure is an error at the end of a response.
type Failure struct {
	// Code is the provider's code, such as "rate_limit_exceeded".
	Code string `json:"code"`
	// Message is the text for users.
	Message string `json:"message"`
}
