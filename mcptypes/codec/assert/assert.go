// Package assert checks JSON values against the parts of a schema that have no form in Go, such
// as a pattern. It is apart from package codec, so that programs whose types need none of them
// do not contain a validator.
package assert

import (
	"encoding/json"
	"sync"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/mcptypes/codec"
	jsonv2 "github.com/go-json-experiment/json"
)

// New returns a function that checks a value against a schema without references to others. The
// schema is compiled when it is first used. The error is a [*codec.DecodeError].
func New(schema string) func(raw []byte) error {
	compile := sync.OnceValues(func() (*outputschema.Schema, error) {
		return outputschema.Compile(json.RawMessage(schema))
	})
	return func(raw []byte) error {
		s, err := compile()
		if err != nil {
			return err
		}
		var value any
		if err := jsonv2.Unmarshal(raw, &value); err != nil {
			return err
		}
		if err := s.CheckValue(value); err != nil {
			wrong := err.(*outputschema.FaultError)
			return &codec.DecodeError{Path: wrong.Path, Msg: wrong.Why}
		}
		return nil
	}
}
