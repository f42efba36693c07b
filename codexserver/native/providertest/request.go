package providertest

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Request is a request as it arrived.
type Request struct {
	// Method is POST for a turn.
	Method string
	// Path is the path without the query.
	Path string
	// Query is the raw query.
	Query string
	// Header is the request's header.
	Header http.Header
	// Body is the request's body. Do not change it.
	Body []byte
}

// ToolOutput is the output of a tool call.
type ToolOutput struct {
	// CallID is the id of the call, Output the text for the model.
	CallID, Output string
}

// message has the members of a chat message and of a Responses item that this package
// reads.
type message struct {
	Type       string         `json:"type"`
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	CallID     string         `json:"call_id"`
	Output     jsontext.Value `json:"output"`
}

// body is what this package reads of a request's body.
type body struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Input    []message `json:"input"`
}

// read returns what a body has that is a request; another one has nothing.
func (r Request) read() (b body) {
	_ = json.Unmarshal(r.Body, &b, jsontext.AllowInvalidUTF8(true))
	b.Messages = append(b.Messages, b.Input...)
	return b
}

// Model returns the model that the request names.
func (r Request) Model() string { return r.read().Model }

// ToolOutputs returns the outputs of tools in the request, oldest first.
func (r Request) ToolOutputs() []ToolOutput {
	var out []ToolOutput
	for _, m := range r.read().Messages {
		switch {
		case m.Role == "tool":
			out = append(out, ToolOutput{m.ToolCallID, text(m.Content)})
		case m.Type == "function_call_output" || m.Type == "custom_tool_call_output":
			out = append(out, ToolOutput{m.CallID, text(m.Output)})
		}
	}
	return out
}

// LastToolOutput returns the newest output of a tool, "" without one. For a command, whose
// output is {"output":…,"metadata":…}, it returns only what the command printed.
func (r Request) LastToolOutput() string {
	all := r.ToolOutputs()
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1].Output
	var command struct {
		Output   *string        `json:"output"`
		Metadata jsontext.Value `json:"metadata"`
	}
	if json.Unmarshal([]byte(last), &command) == nil && command.Output != nil && command.Metadata != nil {
		return *command.Output
	}
	return last
}

// LastUserText returns the text of the user's newest message, "" without one. It leaves out what the
// engine puts in front of it on the Chat wire: the rules of files and the environment. The message with
// which the engine continues the turn of a killed server is not the user's.
func (r Request) LastUserText() string {
	last := ""
	for _, m := range r.read().Messages {
		if m.Role != "user" {
			continue
		}
		said, _, joined := strings.Cut(text(m.Content), "<interrupted>\n")
		if joined { // with a message before it, unless that has had an answer
			said = strings.TrimSuffix(said, "\n\n")
		}
		if said != "" || !joined {
			last = said
		}
	}
	for _, end := range []string{"</user_instructions>\n\n", "</environment_context>\n\n"} {
		if i := strings.LastIndex(last, end); i >= 0 {
			last = last[i+len(end):]
		}
	}
	return last
}

// text returns the text of a content: a string, or the joined texts of its parts.
func text(raw jsontext.Value) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // another form has no text
	for _, p := range parts {
		s += p.Text
	}
	return s
}
