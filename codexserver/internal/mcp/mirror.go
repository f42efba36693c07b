package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// HeaderThread is the HTTP header in which clients repeat the argument threadId of a call,
// so that a proxy can find the server that has the thread.
const HeaderThread = "Mcp-Param-" + mirrorName

const mirrorName = "Thread-Id"

// mirrored returns a tool's schema. If it has the argument threadId, the result asks
// clients for [HeaderThread].
func mirrored(schema json.RawMessage) json.RawMessage {
	d := jsontext.NewDecoder(bytes.NewReader(schema))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return schema // at its end
		}
		if t.Kind() == '{' && d.StackPointer() == "/properties/threadId" {
			at := d.InputOffset()
			return slices.Concat(schema[:at], []byte(`"x-mcp-header":"`+mirrorName+`",`), schema[at:])
		}
	}
}
