package elicit

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Only this file imports go-json-experiment/json. The others import encoding/json, whose
// RawMessage is part of the API.

// unmarshal decodes strictly: exact names, no duplicate members, valid UTF-8.
func unmarshal(raw []byte, into any) error { return json.Unmarshal(raw, into) }

// marshal encodes v with the members of maps in sorted order. It replaces bytes that are
// not UTF-8.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
