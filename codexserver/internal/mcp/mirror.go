package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/go-json-experiment/json/jsontext"
)

// mirrored returns a tool's schema. If it has the argument threadId, the result asks
// clients for [era.HeaderThread].
func mirrored(schema json.RawMessage) json.RawMessage {
	d := jsontext.NewDecoder(bytes.NewReader(schema))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return schema // at its end
		}
		if t.Kind() == '{' && d.StackPointer() == "/properties/threadId" {
			at := d.InputOffset()
			return slices.Concat(schema[:at], []byte(`"x-mcp-header":"`+era.ParamThread+`",`), schema[at:])
		}
	}
}
