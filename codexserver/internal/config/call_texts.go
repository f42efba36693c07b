package config

import (
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// textKeys are the keys whose values a call may write as texts with JSON.
type textKeys struct {
	Config
	Features map[string]bool `json:"features"`
}

// ReadTexts replaces numbers, booleans, lists and tables of a call's configuration that a host sent as
// texts with JSON, where the key takes no text. It must come before [CallKeys].
func ReadTexts(overrides map[string]stdjson.RawMessage) {
	for key, raw := range overrides {
		segments, err := splitKey(key)
		if err != nil {
			continue // CallKeys reports it
		}
		if t := typeAt(reflect.TypeFor[textKeys](), segments); t != nil {
			overrides[key] = stdjson.RawMessage(readText(jsontext.Value(raw), t))
		}
	}
}

// Chooses reports whether a call's configuration, of which [ReadTexts] has read the texts, has a dotted key, or a key
// below it. A key may be quoted, and be the dotted one of a table or a member of it.
func Chooses(overrides map[string]stdjson.RawMessage, key string) bool {
	want := strings.Split(key, ".")
	for name, raw := range overrides {
		segments, err := splitKey(name)
		if err != nil { // no key, so nobody reads it
			segments = []string{name}
		}
		same := min(len(segments), len(want))
		if !slices.Equal(segments[:same], want[:same]) {
			continue
		}
		if same == len(want) {
			return true
		}
		var members map[string]stdjson.RawMessage
		if json.Unmarshal(raw, &members) == nil && Chooses(members, strings.Join(want[same:], ".")) {
			return true
		}
	}
	return false
}

// typeAt returns the type of the value at a path below a table, or nil.
func typeAt(t reflect.Type, path []string) reflect.Type {
	for _, name := range path {
		switch t.Kind() {
		case reflect.Struct:
			t = memberType(t, name)
		case reflect.Map:
			t = t.Elem()
		default:
			return nil
		}
		if t == nil {
			return nil
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

// memberType returns the type of the field that has a key, or nil.
func memberType(table reflect.Type, key string) reflect.Type {
	for field := range table.Fields() {
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case name == key && name != "-":
			return field.Type
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			if t := memberType(field.Type, key); t != nil {
				return t
			}
		}
	}
	return nil
}

// readText returns the value that a text has as JSON if t takes that, also inside of tables.
func readText(value jsontext.Value, t reflect.Type) jsontext.Value {
	if value.Kind() == '"' {
		var text string
		if json.Unmarshal(value, &text) != nil || !takes(t, jsontext.Value(text)) {
			return value
		}
		value = jsontext.Value(strings.TrimSpace(text))
	}
	var members map[string]jsontext.Value
	if value.Kind() != '{' || json.Unmarshal(value, &members) != nil {
		return value
	}
	for name, member := range members {
		segments, err := splitKey(name)
		if err != nil {
			continue
		}
		if inner := typeAt(t, segments); inner != nil {
			members[name] = readText(member, inner)
		}
	}
	value, _ = json.Marshal(members, json.Deterministic(true)) // they were JSON
	return value
}

// takes reports whether values of a type may have this one, and no text.
func takes(t reflect.Type, value jsontext.Value) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || !value.IsValid() {
		return false
	}
	switch t.Kind() {
	case reflect.Bool:
		return value.Kind() == 't' || value.Kind() == 'f'
	case reflect.Int, reflect.Int64, reflect.Float64:
		return value.Kind() == '0'
	case reflect.Slice:
		return value.Kind() == '['
	case reflect.Map, reflect.Struct:
		return value.Kind() == '{'
	}
	return false
}
