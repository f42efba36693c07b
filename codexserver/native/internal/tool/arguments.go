package tool

import (
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

// kindOf describes the expected JSON type, and the one that was found.
func kindOf(e *json.SemanticError) string {
	kind := "another type"
	if e.GoType != nil {
		switch e.GoType.Kind() {
		case reflect.Slice:
			kind = "an array"
		case reflect.Struct:
			kind = "an object"
		case reflect.Float64, reflect.Int:
			kind = "a number"
		case reflect.Bool:
			kind = "true or false"
		case reflect.String:
			kind = "a string"
		}
	}
	if e.JSONKind != 0 {
		kind += fmt.Sprintf(", found %s", e.JSONKind)
	}
	return kind
}
