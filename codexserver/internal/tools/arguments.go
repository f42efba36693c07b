package tools

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is the JSON schema of an argument, of all of a tool, or of a result.
type schema struct {
	Header               string         `json:"x-mcp-header,omitzero"`
	Type                 string         `json:"type,omitzero"`
	Enum                 []string       `json:"enum,omitempty"`
	Items                *schema        `json:"items,omitzero"`
	Minimum              *float64       `json:"minimum,omitzero"`
	Maximum              *float64       `json:"maximum,omitzero"`
	Required             []string       `json:"required,omitempty"`
	AdditionalProperties *bool          `json:"additionalProperties,omitzero"`
	Shown                jsontext.Value `json:"properties,omitzero"` // in the order of the type
	Description          string         `json:"description,omitzero"`

	Properties map[string]*schema `json:"-"`
}

// schemaOf returns the schema of a Go type. Its fields have the tags json, required, enum with words, max for a
// number from 0, and about, the description. keep, unless nil, may change a member, or leave it out.
func schemaOf(t reflect.Type, keep func(f reflect.StructField, name string, member *schema) bool) *schema {
	o := &schema{Type: "integer"}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), keep)
	case reflect.String:
		o.Type = "string"
	case reflect.Bool:
		o.Type = "boolean"
	case reflect.Float64:
		o.Type = "number"
	case reflect.Map:
		o.Type, o.AdditionalProperties = "object", new(true)
	case reflect.Slice:
		if o.Type = "object"; t.Elem().Kind() != reflect.Uint8 { // of JSON
			o.Type, o.Items = "array", schemaOf(t.Elem(), nil)
		}
	case reflect.Struct:
		o.Type, o.AdditionalProperties, o.Properties = "object", new(false), map[string]*schema{}
		var shown []string
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			member := schemaOf(f.Type, nil)
			member.Description = f.Tag.Get("about")
			if words := f.Tag.Get("enum"); words != "" {
				member.Enum = strings.Split(words, ",")
			}
			if most, err := strconv.ParseFloat(f.Tag.Get("max"), 64); err == nil {
				member.Minimum, member.Maximum = new(0.0), &most
			}
			if keep != nil && !keep(f, name, member) {
				continue
			}
			if f.Tag.Get("required") != "" {
				o.Required = append(o.Required, name)
			}
			o.Properties[name], shown = member, append(shown, strconv.Quote(name)+":"+string(member.encode()))
		}
		o.Shown = jsontext.Value("{" + strings.Join(shown, ",") + "}")
	}
	return o
}

// resultOf returns the schema of a result of the type T. The parts of a member are in it with the tag parts; without, its
// words name them, because a schema costs each conversation tokens. A later version may have other members.
func resultOf[T any](keep func(name string, member *schema) bool) *schema {
	o := schemaOf(reflect.TypeFor[T](), func(f reflect.StructField, name string, member *schema) bool {
		switch {
		case f.Type == reflect.TypeFor[jsontext.Value]():
			member.Type = "" // any
		case f.Tag.Get("parts") != "":
			member.Items.AdditionalProperties = nil
		default:
			member.Items, member.Shown, member.AdditionalProperties = nil, nil, nil
		}
		return keep(name, member)
	})
	o.AdditionalProperties = nil
	return o
}

// encode returns the schema as JSON.
func (o *schema) encode() []byte {
	b, _ := json.Marshal(o) // it has only texts and numbers
	return b
}

// schema returns the schema of the arguments without some of them. With mirror clients repeat threadId in a header.
func (t *tool) schema(without []string, mirror bool) *schema {
	o := schemaOf(reflect.TypeOf(t.arguments()), func(_ reflect.StructField, name string, member *schema) bool {
		if i := slices.Index(t.about, name); i >= 0 && i%2 == 0 {
			member.Description = t.about[i+1]
		}
		if mirror && name == "threadId" {
			member.Header = era.ParamThread
		}
		return !slices.Contains(without, name)
	})
	if t.open {
		o.AdditionalProperties = nil
	}
	return o
}

// input returns the schema of all arguments. It makes it at its first call.
func (t *tool) input() *schema {
	t.once.Do(func() { t.whole = t.schema(nil, false) })
	return t.whole
}

// kinds are the types of JSON values, as schemas name them.
var kinds = [256]string{
	'{': "object", '[': "array", '"': "string", '0': "number", 't': "boolean", 'f': "boolean", 'n': "null",
}

// read returns a value as the schema wants it. A text may have another value as JSON, see [schema.ofText], and a
// number outside its bounds counts as the nearest one inside. The error names an argument that is locked, is missing,
// or does not fit the schema.
func (o *schema) read(path jsontext.Pointer, value jsontext.Value, locked []string) (jsontext.Value, error) {
	if value.Kind() == '"' && o.Type != "string" {
		if value = o.ofText(value); value.Kind() == 'n' {
			return value, nil
		}
	}
	switch got := kinds[value.Kind()]; {
	case got == o.Type, got == "number" && o.Type == "integer":
	default:
		return nil, fmt.Errorf("argument %s: got %s, want %s", path, got, o.Type)
	}
	switch {
	case o.Properties != nil:
		var given map[string]jsontext.Value
		if err := json.Unmarshal(value, &given); err != nil {
			return nil, err
		}
		known := slices.DeleteFunc(slices.Clone(locked), func(name string) bool { return o.Properties[name] == nil })
		if err := admit.Unlocked(given, known); err != nil {
			return nil, err
		}
		if err := o.members(path, given); err != nil {
			return nil, err
		}
		return json.Marshal(given, json.Deterministic(true))
	case o.Items != nil:
		var all []jsontext.Value
		if err := json.Unmarshal(value, &all); err != nil {
			return nil, err
		}
		for i := range all {
			var err error
			if all[i], err = o.Items.read(path.AppendToken(strconv.Itoa(i)), all[i], nil); err != nil {
				return nil, err
			}
		}
		return json.Marshal(all)
	case o.Enum != nil:
		var word string
		if err := json.Unmarshal(value, &word); err != nil || !slices.Contains(o.Enum, word) {
			return nil, fmt.Errorf("argument %s: value must be one of %s", path, o.words())
		}
	case o.Maximum != nil:
		if n, err := strconv.ParseFloat(string(value), 64); err == nil && (n < *o.Minimum || n > *o.Maximum) {
			return json.Marshal(min(max(n, *o.Minimum), *o.Maximum))
		}
	}
	return value, nil
}

// words returns the words of an enum for people.
func (o *schema) words() string { return `"` + strings.Join(o.Enum, `", "`) + `"` }

// members reads each member of an object. It removes nulls, which count as missing, and refuses unknown names:
// otherwise a caller that writes approval_policy would run under another policy than it expects. An object with
// additional properties lets names pass that are not alike to one of its own.
func (o *schema) members(path jsontext.Pointer, given map[string]jsontext.Value) (err error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		inner, value := o.Properties[name], given[name]
		switch {
		case value.Kind() == 'n':
		case inner == nil:
			err = o.unknown(path, name)
		default:
			value, err = inner.read(path.AppendToken(name), value, nil)
		}
		if err != nil {
			return err
		}
		if given[name] = value; value.Kind() == 'n' {
			delete(given, name)
		}
	}
	for _, name := range o.Required {
		if given[name] != nil || name == "threadId" && (given["conversationId"] != nil || given["sessionId"] != nil) {
			continue
		}
		err := fmt.Errorf("argument %s is missing", path.AppendToken(name))
		if member := o.Properties[name]; member.Enum != nil {
			err = fmt.Errorf("%w: want one of %s", err, member.words())
		}
		return err
	}
	return nil
}

// maxArgumentName is how many bytes of an unknown name an error repeats.
const maxArgumentName = 100

// unknown returns the error about a name that the schema does not have, or nil if it takes others and the
// name is not one of its own in another form.
func (o *schema) unknown(path jsontext.Pointer, name string) error {
	known := slices.Sorted(maps.Keys(o.Properties))
	open := o.AdditionalProperties == nil || *o.AdditionalProperties
	given := letters(name)
	if open && !slices.ContainsFunc(known, func(name string) bool { return letters(name) == given }) {
		return nil
	}
	near, advice := nearest(name, known), "the arguments are "+strings.Join(known, ", ")
	if near != "" {
		advice = "did you mean " + near + "?"
	}
	if o.Properties["config"] != nil {
		advice += " (keys of config.toml go into config)"
	}
	return fmt.Errorf("unknown argument %s: %s", path.AppendToken(text.Head(name, maxArgumentName)), advice)
}

// nearest returns the name that was likely meant, or "". It prefers a name that differs
// only in case and separators, then one that begins with the other (sandbox_mode and
// sandbox), then one that ends with the other (reasoning_effort and effort), then the one
// with the fewest edits.
func nearest(name string, names []string) (found string) {
	given, least := letters(name), 3
	for _, candidate := range names {
		want, how := letters(candidate), 3
		switch {
		case given == want:
			how = 0
		case len(given) >= 3 && (strings.HasPrefix(given, want) || strings.HasPrefix(want, given)):
			how = 1
		case min(len(given), len(want)) >= 5 && (strings.HasSuffix(given, want) || strings.HasSuffix(want, given)):
			how = 2
		}
		if how < least {
			found, least = candidate, how
		}
	}
	return cmp.Or(found, text.Nearest(name, slices.Values(names)))
}

// letters drops case and separators.
func letters(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// maxArgumentDepth is how often a text may be in another one.
const maxArgumentDepth = 4

// ofText returns the value that the schema wants and a text stands for: some hosts send lists, objects, numbers and
// booleans as texts with JSON each time, some twice over, and their models cannot do otherwise. An empty text is a
// value that is missing, and another one stands for a list of itself. Other texts stay.
func (o *schema) ofText(given jsontext.Value) jsontext.Value {
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
		case o.Type == "array" && o.Items != nil && o.Items.Type == "string" && inner[0] != '[' && inner[0] != '{':
			return slices.Concat(jsontext.Value("["), value, jsontext.Value("]"))
		}
		break
	}
	return given
}

// wants reports whether the schema wants a value. A missing value and null are the same.
func (o *schema) wants(value jsontext.Value) bool {
	kind := kinds[value.Kind()]
	return value.IsValid() && (kind == "null" || kind == o.Type || kind == "number" && o.Type == "integer")
}
