package elicit

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The other files import encoding/json, whose RawMessage is part of the API.

// unmarshal decodes strictly: exact names, no duplicate members, valid UTF-8.
func unmarshal(raw []byte, into any) error { return json.Unmarshal(raw, into) }

// marshal encodes with the members of maps in order. Text that is not UTF-8 is encoded
// with replacement characters.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
