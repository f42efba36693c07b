package tools

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeArguments reads arguments. Only a number can fit the schema and not its field.
func decodeArguments(raw stdjson.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = stdjson.RawMessage(`{}`)
	}
	err := json.Unmarshal(raw, into)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer != "" {
		return fmt.Errorf("argument %s: the number is out of range, or written with a fraction", wrong.JSONPointer)
	}
	return err
}

// input is the part of a tool's definition that describes its arguments.
type input struct {
	object
	fits *outputschema.Schema
}

// object is the schema of an object, or of another value.
type object struct {
	Type                 jsontext.Value    `json:"type"`
	Items                *object           `json:"items"`
	Required             []string          `json:"required"`
	AdditionalProperties *bool             `json:"additionalProperties"`
	Properties           map[string]object `json:"properties"`
	Enum                 []jsontext.Value  `json:"enum"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
}

// inputOf returns a function that reads the inputSchema of a definition at its first call.
func inputOf(definition string) func() (*input, error) {
	return sync.OnceValues(func() (*input, error) {
		var d struct {
			InputSchema stdjson.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal([]byte(definition), &d); err != nil {
			return nil, err
		}
		in := &input{}
		if err := json.Unmarshal(d.InputSchema, &in.object); err != nil {
			return nil, err
		}
		var err error
		in.fits, err = outputschema.Compile(d.InputSchema)
		return in, err
	})
}

// normal returns the arguments of a call as the schema wants them: without texts that have JSON, and with numbers
// inside their bounds. The error names an argument that is locked or does not fit the schema.
func (in *input) normal(arguments stdjson.RawMessage, locked, alike []string) (stdjson.RawMessage, error) {
	arguments, err := in.readTexts(arguments)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := decodeArguments(arguments, &given); err != nil {
		return nil, err
	}
	if err := unlocked(given, locked); err != nil {
		return nil, err
	}
	if clamped, err := in.check(given, alike); err != nil || !clamped {
		return arguments, err
	}
	return json.Marshal(given)
}

// check removes nulls from the arguments of a call, and lets a number outside its bounds count as
// the nearest one inside. It reports whether there was one. An error names an argument. alike are
// arguments of a tool that ignores unknown ones, but not these misspelt.
func (in *input) check(given map[string]any, alike []string) (clamped bool, err error) {
	if err := in.names("", given, alike); err != nil {
		return false, err
	}
	for _, name := range in.Required {
		if _, ok := given[name]; ok {
			continue
		}
		if !slices.ContainsFunc(replacing(name), func(other string) bool { return given[other] != nil }) {
			why := "is missing"
			var want []string
			for _, value := range in.Properties[name].Enum {
				want = append(want, string(value))
			}
			if want != nil {
				why += ": want one of " + strings.Join(want, ", ")
			}
			return false, fmt.Errorf("argument /%s %s", name, why)
		}
	}
	clamped = in.clamp(given)
	var wrong *outputschema.FaultError
	if err := in.fits.CheckValue(given); errors.As(err, &wrong) && wrong.Path != "" {
		return false, fmt.Errorf("argument %s: %s", wrong.Path, wrong.Why)
	}
	return clamped, nil
}

// readTexts reads lists, objects, numbers and booleans that a host sent as texts with JSON: some do so
// each time, some twice over, and their models cannot do otherwise. An empty text is a value that is
// missing, and another one stands for a list of itself. Only a text that the schema does not want is read.
func (in *input) readTexts(arguments stdjson.RawMessage) (stdjson.RawMessage, error) {
	value := jsontext.Value(arguments)
	if len(value) == 0 || !in.readText(&value, 0) {
		return arguments, nil
	}
	if value.Kind() != '{' {
		return nil, errors.New("the arguments are no object")
	}
	return stdjson.RawMessage(value), nil
}

// maxArgumentDepth is how deep texts are read.
const maxArgumentDepth = 4

// readText replaces a text by the value that it has as JSON, if the schema wants that, also inside of
// objects and lists. It reports whether it replaced anything.
func (o *object) readText(value *jsontext.Value, depth int) (changed bool) {
	if value.Kind() == '"' {
		read, ok := o.ofText(*value)
		if !ok {
			return false
		}
		*value, changed = read, true
	}
	if depth > maxArgumentDepth {
		return changed
	}
	inside := false
	switch value.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if len(o.Properties) == 0 || json.Unmarshal(*value, &members) != nil {
			return changed
		}
		for name, inner := range o.Properties {
			if member, ok := members[name]; ok && inner.readText(&member, depth+1) {
				members[name], inside = member, true
			}
		}
		if inside {
			*value, _ = json.Marshal(members, json.Deterministic(true)) // they were JSON
		}
	case '[':
		var all []jsontext.Value
		if o.Items == nil || json.Unmarshal(*value, &all) != nil {
			return changed
		}
		for i := range all {
			inside = o.Items.readText(&all[i], depth+1) || inside
		}
		if inside {
			*value, _ = json.Marshal(all) // they were JSON
		}
	}
	return changed || inside
}

// ofText returns the value that the schema wants and a text stands for.
func (o *object) ofText(value jsontext.Value) (jsontext.Value, bool) {
	if !o.takes() || o.takes("string") {
		return nil, false
	}
	for range maxArgumentDepth { // as often as it is a text again
		whole, content := value, ""
		if json.Unmarshal(value, &content) != nil {
			return nil, false
		}
		content = strings.TrimSpace(content)
		value = jsontext.Value(content)
		switch {
		case content == "":
			return jsontext.Value("null"), true
		case o.wants(value):
			return value, true
		case value.Kind() == '"' && value.IsValid():
			continue
		case o.takes("array") && o.Items != nil && o.Items.takes("string") && content[0] != '[' && content[0] != '{':
			return slices.Concat(jsontext.Value("["), whole, jsontext.Value("]")), true
		}
		break
	}
	return nil, false
}

// takes reports whether the schema names each of the types, and any at all.
func (o *object) takes(types ...string) bool {
	var named []string
	if json.Unmarshal(o.Type, &named) != nil {
		named = []string{strings.Trim(string(o.Type), `"`)}
	}
	return len(o.Type) > 0 && !slices.ContainsFunc(types, func(one string) bool { return !slices.Contains(named, one) })
}

// wants reports whether the schema wants a value. Null is a value that is missing.
func (o *object) wants(value jsontext.Value) bool {
	if !value.IsValid() {
		return false
	}
	switch value.Kind() {
	case '{':
		return o.takes("object")
	case '[':
		return o.takes("array")
	case '0':
		return o.takes("number") || o.takes("integer")
	case 't', 'f':
		return o.takes("boolean")
	}
	return value.Kind() == 'n'
}

// replacing returns the arguments with which a call does not need another one.
func replacing(name string) []string {
	switch name {
	case "threadId":
		return []string{"conversationId", "sessionId"}
	}
	return nil
}

// names removes nulls, which count as missing, and refuses unknown names. Otherwise a caller
// that writes approval_policy would run under another policy than it expects.
func (o *object) names(path string, given map[string]any, alike []string) error {
	maps.DeleteFunc(given, func(_ string, v any) bool { return v == nil })
	open := o.AdditionalProperties == nil || *o.AdditionalProperties
	own := slices.Sorted(maps.Keys(o.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if inner, ok := o.Properties[name]; ok {
			if value, ok := given[name].(map[string]any); ok && inner.Properties != nil {
				if err := inner.names(path+"/"+name, value, nil); err != nil {
					return err
				}
			}
			continue
		}
		advice := "the arguments are " + strings.Join(own, ", ")
		if near := nearest(name, own); near != "" {
			advice = "did you mean " + near + "?"
		}
		if open {
			i := slices.IndexFunc(alike, func(one string) bool { return letters(name) == letters(one) })
			if i < 0 {
				continue
			}
			advice = "did you mean " + alike[i] + "?"
		}
		if _, ok := o.Properties["config"]; ok {
			advice += " (keys of config.toml go into config)"
		}
		return fmt.Errorf("unknown argument %s: %s", jsontext.Pointer(path).AppendToken(text.Head(name, maxArgumentName)), advice)
	}
	return nil
}

func (o *object) clamp(given map[string]any) (clamped bool) {
	for name, v := range given {
		if n, ok := v.(float64); ok && o.Properties[name].Minimum != nil && o.Properties[name].Maximum != nil {
			inside := min(max(n, *o.Properties[name].Minimum), *o.Properties[name].Maximum)
			given[name], clamped = inside, clamped || inside != n
		}
	}
	return clamped
}
