package mcptool

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeArguments reads a tool's arguments; its error names the member.
func decodeArguments(raw stdjson.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = stdjson.RawMessage(`{}`)
	}
	err := json.Unmarshal(raw, into)
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) || wrong.GoType == nil {
		return err
	}
	want := wrong.GoType
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	return fmt.Errorf("argument %s: want %s, found %s", wrong.JSONPointer, goKinds[want.Kind()], jsonKinds[wrong.JSONKind])
}

var (
	goKinds = map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "a boolean", reflect.Map: "an object", reflect.Struct: "an object",
		reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
		reflect.Slice: "an array",
	}
	jsonKinds = map[jsontext.Kind]string{
		'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
	}
)
