package tools

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads arguments that fit their schema. Only a number can fit it and not its field.
func decode(raw []byte, into any) error {
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

// normal returns the arguments of a call as the schema wants them, see [object.read]. Open arguments may have
// unknown names. The error names an argument that is locked, is missing, or does not fit the schema.
func (in *input) normal(arguments stdjson.RawMessage, locked []string, open bool) (stdjson.RawMessage, error) {
	value := jsontext.Value(arguments)
	if len(value) == 0 {
		value = jsontext.Value(`{}`)
	}
	if value.Kind() == '"' {
		value = in.ofText(value)
	}
	if value.Kind() != '{' {
		return nil, errors.New("the arguments are no object")
	}
	var given map[string]jsontext.Value
	if err := json.Unmarshal(value, &given); err != nil {
		return nil, err
	}
	if err := unlocked(given, locked); err != nil {
		return nil, err
	}
	if err := in.members("", given, open); err != nil {
		return nil, err
	}
	for _, name := range in.Required {
		if given[name] == nil && (name != "threadId" || given["conversationId"] == nil && given["sessionId"] == nil) {
			return nil, in.missing(name)
		}
	}
	value, err := json.Marshal(given, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	var whole any
	if err := decode(value, &whole); err != nil {
		return nil, err
	}
	var wrong *outputschema.FaultError
	if err := in.fits.CheckValue(whole); errors.As(err, &wrong) && wrong.Path != "" {
		return nil, fmt.Errorf("argument %s: %s", wrong.Path, wrong.Why)
	}
	return stdjson.RawMessage(value), nil
}

// missing returns the error about a missing argument.
func (in *input) missing(name string) error {
	var want []string
	for _, value := range in.Properties[name].Enum {
		want = append(want, string(value))
	}
	if want == nil {
		return fmt.Errorf("argument /%s is missing", name)
	}
	return fmt.Errorf("argument /%s is missing: want one of %s", name, strings.Join(want, ", "))
}

// members reads each member of an object. It removes nulls, which count as missing, and refuses unknown names:
// otherwise a caller that writes approval_policy would run under another policy than it expects. Open lets
// names pass that are not alike to one of the schema.
func (o *object) members(path jsontext.Pointer, given map[string]jsontext.Value, open bool) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		inner, known := o.Properties[name]
		value := given[name]
		if known {
			var err error
			if value, err = inner.read(path.AppendToken(name), value); err != nil {
				return err
			}
			given[name] = value
		}
		if value.Kind() == 'n' {
			delete(given, name)
		} else if !known {
			if err := o.unknown(path, name, open); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknown returns the error about a name that the schema does not have, or nil if it is open to others and the
// name is not one of its own in another form.
func (o *object) unknown(path jsontext.Pointer, name string, open bool) error {
	own := slices.Sorted(maps.Keys(o.Properties))
	if given := letters(name); open && !slices.ContainsFunc(own, func(name string) bool { return letters(name) == given }) {
		return nil
	}
	near, advice := nearest(name, own), "the arguments are "+strings.Join(own, ", ")
	if near != "" {
		advice = "did you mean " + near + "?"
	}
	if _, ok := o.Properties["config"]; ok {
		advice += " (keys of config.toml go into config)"
	}
	return fmt.Errorf("unknown argument %s: %s", path.AppendToken(text.Head(name, maxArgumentName)), advice)
}

// read returns a value as the schema wants it. A text may have another value as JSON, see [object.ofText], and a
// number outside its bounds counts as the nearest one inside.
func (o *object) read(path jsontext.Pointer, value jsontext.Value) (jsontext.Value, error) {
	if value.Kind() == '"' && len(o.Type) > 0 && !o.takes("string") {
		value = o.ofText(value)
	}
	switch {
	case value.Kind() == '{' && o.Properties != nil:
		var given map[string]jsontext.Value
		if err := json.Unmarshal(value, &given); err != nil {
			return nil, err
		}
		if err := o.members(path, given, o.AdditionalProperties == nil || *o.AdditionalProperties); err != nil {
			return nil, err
		}
		return json.Marshal(given, json.Deterministic(true))
	case value.Kind() == '[' && o.Items != nil:
		var all []jsontext.Value
		if err := json.Unmarshal(value, &all); err != nil {
			return nil, err
		}
		for i := range all {
			var err error
			if all[i], err = o.Items.read(path, all[i]); err != nil {
				return nil, err
			}
		}
		return json.Marshal(all)
	case value.Kind() == '0' && o.Minimum != nil && o.Maximum != nil:
		if n, err := strconv.ParseFloat(string(value), 64); err == nil && (n < *o.Minimum || n > *o.Maximum) {
			return json.Marshal(min(max(n, *o.Minimum), *o.Maximum))
		}
	}
	return value, nil
}

// maxArgumentDepth is how often a text may be in another one.
const maxArgumentDepth = 4

// ofText returns the value that the schema wants and a text stands for: some hosts send lists, objects, numbers and
// booleans as texts with JSON each time, some twice over, and their models cannot do otherwise. An empty text is a
// value that is missing, and another one stands for a list of itself. Other texts stay.
func (o *object) ofText(given jsontext.Value) jsontext.Value {
	value := given
	for range maxArgumentDepth {
		content := ""
		if json.Unmarshal(value, &content) != nil {
			return given
		}
		inner := jsontext.Value(strings.TrimSpace(content))
		switch {
		case len(inner) == 0:
			return jsontext.Value("null")
		case o.wants(inner):
			return inner
		case inner.Kind() == '"' && inner.IsValid():
			value = inner
			continue
		case o.takes("array") && o.Items != nil && o.Items.takes("string") && inner[0] != '[' && inner[0] != '{':
			return slices.Concat(jsontext.Value("["), value, jsontext.Value("]"))
		}
		break
	}
	return given
}

// takes reports whether the schema names a type.
func (o *object) takes(name string) bool {
	var named []string
	if json.Unmarshal(o.Type, &named) != nil {
		named = []string{strings.Trim(string(o.Type), `"`)}
	}
	return slices.Contains(named, name)
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
