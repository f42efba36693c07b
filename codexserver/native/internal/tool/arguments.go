package tool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// argumentError reports to the model which argument of a call is wrong.
type argumentError struct{ field, reason string }

func (e *argumentError) Error() string {
	if e.field == "" {
		return "failed to parse function arguments: " + e.reason
	}
	return fmt.Sprintf("failed to parse function arguments: %s: %s", e.field, e.reason)
}

// maxTexts is how many arguments of a call may be written as texts.
const maxTexts = 16

// decodeArguments decodes the JSON text of a call. Unknown members are ignored. No text is a call without arguments. Weak
// models write a list, a number or a boolean as JSON within a text: where a text does not fit, what it says is read. An empty
// one says nothing. A whole number may be written as 2.0.
func decodeArguments(text string, to any) error {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	err := json.Unmarshal([]byte(text), to)
	var semantic *json.SemanticError
	for range maxTexts {
		if !errors.As(err, &semantic) {
			break
		}
		opened := reread(text, semantic.JSONPointer)
		if opened == "" {
			break
		}
		text, err = opened, json.Unmarshal([]byte(opened), to)
	}
	if err == nil {
		return nil
	}
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

// reread replaces the text at a place in JSON by the JSON that it has, and a number such as 2.0 by the whole one. It returns ""
// for what stays wrong.
func reread(text string, at jsontext.Pointer) string {
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		before := d.InputOffset()
		token, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if parent, n := d.StackIndex(d.StackDepth()); d.StackPointer() != at || parent == '{' && n%2 == 1 {
			continue
		}
		inner := jsontext.Value(cmp.Or(strings.TrimSpace(token.String()), "null"))
		switch whole, part, _ := strings.Cut(token.String(), "."); {
		case token.Kind() == '0' && part != "" && strings.Trim(part, "0") == "":
			inner = jsontext.Value(whole)
		case token.Kind() != '"':
			return ""
		case strings.EqualFold(string(inner), "true"), strings.EqualFold(string(inner), "false"): // Python's
			inner = bytes.ToLower(inner)
		}
		if !inner.IsValid() || inner.Kind() == '"' {
			return ""
		}
		begin := len(text) - len(strings.TrimLeft(text[before:], " \t\r\n,:"))
		return text[:begin] + string(inner) + text[d.InputOffset():]
	}
}

// kinds are the JSON types of what arguments are decoded into.
var kinds = [reflect.UnsafePointer + 1]string{
	reflect.Slice: "an array", reflect.Struct: "an object", reflect.Float64: "a number", reflect.Int: "a number",
	reflect.Bool: "true or false", reflect.String: "a string",
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
