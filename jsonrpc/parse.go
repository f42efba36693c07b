package jsonrpc

import "encoding/json"

// Message is one message. A request has an ID and a Method, a notification a Method, and a response a Result
// or an Error, and an ID if known.
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage // an object or an array; nil when absent or null
	Result json.RawMessage
	Error  json.RawMessage
}

// Parse reads a message like a peer with LenientVersion, for a transport that must know what it moves. Members are
// slices of text. If it is none, or an array, the error is what a peer answers, and the Message has what is known.
func Parse(text []byte) (Message, *Error) {
	var m message
	m.parse(text, dialect{depth: maxDepth, lenient: true})
	return Message{m.id, string(m.method), m.params, m.result, m.errv}, m.fault
}
