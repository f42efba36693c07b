package appserver

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
)

// optional reads a JSON value. It returns nil if the value is missing, null or of another
// type.
func optional[T any](raw stdjson.RawMessage) *T {
	var v *T
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

func table(raw stdjson.RawMessage) map[string]stdjson.RawMessage {
	if t := optional[map[string]stdjson.RawMessage](raw); t != nil {
		return *t
	}
	return nil
}
