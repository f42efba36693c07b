package mcphttp

import (
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// summary is the part of a message to a client that this package uses.
type summary struct {
	id     jsonrpc.ID
	method string // "" for an answer
	params jsontext.Value

	failed *jsonrpc.Error // of an error answer
	path   string         // the faulty member of params
}

// summarize reads a message of a server.
func summarize(m []byte) (out summary) {
	said, _ := read(m) // of what is no message, what could be read
	out.id, out.method, out.params = said.ID, said.Method, jsontext.Value(said.Params)
	if said.Error == nil {
		return out
	}
	var e struct {
		Code    jsonrpc.Code   `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	}
	_ = jsonv2.Unmarshal(said.Error, &e, lenient()) // an unreadable error is one without a code
	out.failed = &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if path := text(member(e.Data, "path")); path != nil { // other errors have other data
		out.path = *path
	}
	return out
}

// versionOf returns the version in the answer to initialize, "" if that is an error.
func versionOf(m []byte) string {
	var said struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	_ = jsonv2.Unmarshal(m, &said, lenient()) // an error answer has no version
	return said.Result.Version
}
