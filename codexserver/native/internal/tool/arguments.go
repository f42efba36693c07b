package tool

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

// argumentError reports to the model which argument of a call is wrong.
type argumentError struct{ field, reason string }

func (e *argumentError) Error() string {
	if e.field == "" {
		return "failed to parse function arguments: " + e.reason
	}
	return fmt.Sprintf("failed to parse function arguments: %s: %s", e.field, e.reason)
}

// decodeArguments decodes the JSON text of a call. Unknown members are ignored.
func decodeArguments(text string, to any) error {
	err := json.Unmarshal([]byte(text), to)
	if err == nil {
		return nil
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		field := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
		reason := fmt.Sprintf("want %s", kindOf(semantic))
		if semantic.Err != nil {
			reason = semantic.Err.Error()
		}
		return &argumentError{field: field, reason: reason}
	}
	return &argumentError{reason: strings.TrimPrefix(err.Error(), "jsontext: ")}
}

// kinds are the JSON types of what arguments are decoded into.
var kinds = [reflect.UnsafePointer + 1]string{
	reflect.Slice: "an array", reflect.Struct: "an object", reflect.Float64: "a number", reflect.Int: "a number", reflect.Bool: "true or false", reflect.String: "a string",
}

// kindOf describes the expected JSON type, and the one that was found.
func kindOf(e *json.SemanticError) string {
	kind := "another type"
	if e.GoType != nil {
		kind = cmp.Or(kinds[e.GoType.Kind()], kind)
	}
	if e.JSONKind != 0 {
		kind += fmt.Sprintf(", found %s", e.JSONKind)
	}
	return kind
}
