package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// The known keywords, grouped by what their values contain. Any other keyword is an error,
// because go-jsonschema would drop it silently.
var (
	keywordProse = []string{"description", "title", "$comment", "examples"}
	keywordPlain = []string{"$schema", "$id", "$ref", "type", "const", "enum", "format", "minimum", "maximum",
		"maxItems", "required", "default", "deprecated"}
	keywordSchema = []string{"items", "additionalProperties"}
	keywordList   = []string{"anyOf", "allOf"}
	keywordMap    = []string{"properties", "definitions", "$defs"}
)

// typed are the keywords that say something only about the values of one type, which must stand next to them.
var typed = map[string]string{
	"properties": "object", "additionalProperties": "object", "required": "object", "items": "array",
	"maxItems": "array",
}

// parsed is a schema file together with its extensions, in the simple form of [simplify].
type parsed struct {
	container   string // the JSON pointer to the definitions
	definitions schemas.Definitions
	extension   map[string]bool // the definitions that an extension adds
}

// parseSchema reads a schema file and the files of its extensions.
func parseSchema(text []byte, extensions ...[]byte) (*parsed, error) {
	container, definitions, err := readDefinitions(text)
	if err != nil {
		return nil, err
	}
	p := &parsed{container: container, definitions: definitions, extension: make(map[string]bool)}
	for _, text := range extensions {
		container, more, err := readDefinitions(text)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(more)) {
			core, ok := definitions[name]
			switch {
			case !ok:
				definitions[name] = more[name]
				p.extension[name] = true
			case form(core) != form(more[name]):
				return nil, fmt.Errorf("%s/%s: the extension's copy differs from the schema's definition", container,
					name)
			}
		}
	}
	return p, p.simplify()
}

// readDefinitions returns the JSON pointer to a schema's definitions, and the definitions by name.
func readDefinitions(text []byte) (container string, definitions schemas.Definitions, err error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return "", nil, fmt.Errorf("read schema: %w", err)
	}
	key, in := definitionsOf(tree)
	if len(in) == 0 {
		return "", nil, refuse("#", "it has no definitions")
	}
	if err := checkKeywords(tree, "#"); err != nil {
		return "", nil, err
	}
	schema, err := schemas.FromJSONReader(bytes.NewReader(text))
	if err != nil {
		return "", nil, fmt.Errorf("read schema: %w", err)
	}
	return "#/" + key, schema.Definitions, nil
}

// definitionsOf returns the definitions of a schema and the keyword that contains them,
// which newer dialects call $defs.
func definitionsOf(tree any) (key string, definitions map[string]any) {
	root, _ := tree.(map[string]any)
	for _, key := range []string{"definitions", "$defs"} {
		if definitions, ok := root[key].(map[string]any); ok {
			return key, definitions
		}
	}
	return "", nil
}

// checkKeywords walks a schema in the order of paths and returns an error for the first
// keyword that the generator does not handle.
func checkKeywords(node any, path string) error {
	if _, ok := node.(bool); ok {
		return nil
	}
	object, ok := node.(map[string]any)
	if !ok {
		return refuse(path, "want a schema, found %T", node)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, here := object[key], path+"/"+key
		if kind := typed[key]; kind != "" && object["type"] == nil {
			return refuse(path, "no rule for %s of a value that need not be an %s", key, kind)
		}
		switch {
		case slices.Contains(keywordProse, key), slices.Contains(keywordPlain, key), strings.HasPrefix(key, "x-"):
		case key == "propertyNames" && compact(value) == `{"type":"string"}`: // true of every name
		case key == "not" && compact(value) == "{}" && len(object) == 1: // false
		case slices.Contains(keywordSchema, key):
			if err := checkKeywords(value, here); err != nil {
				return err
			}
		case slices.Contains(keywordList, key):
			list, ok := value.([]any)
			if !ok {
				return refuse(here, "want a list of schemas")
			}
			for i, v := range list {
				if err := checkKeywords(v, fmt.Sprintf("%s/%d", here, i)); err != nil {
					return err
				}
			}
		case slices.Contains(keywordMap, key):
			members, ok := value.(map[string]any)
			if !ok {
				return refuse(here, "want a map of schemas")
			}
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if err := checkKeywords(members[name], here+"/"+escape(name)); err != nil {
					return err
				}
			}
		default:
			return refuse(path, "no rule for the keyword %q", key)
		}
	}
	return nil
}

// escape returns a name escaped for a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// refuse returns an error with the JSON pointer to its place.
func refuse(pointer, format string, args ...any) error {
	return fmt.Errorf("%s: %w", pointer, fmt.Errorf(format, args...))
}

// refName returns the definition that a $ref names.
func refName(t *schemas.Type) (string, error) {
	for _, prefix := range []string{"#/definitions/", "#/$defs/"} {
		if name, ok := strings.CutPrefix(t.Ref, prefix); ok && !strings.Contains(name, "/") {
			return name, nil
		}
	}
	return "", fmt.Errorf("$ref %q does not name a definition of this schema", t.Ref)
}

// form returns a text that is equal for schemas of the same meaning.
func form(t *schemas.Type) string { return compact(bare(t)) }

// bare returns a schema without prose, and with sorted lists.
func bare(t *schemas.Type) *schemas.Type {
	if t == nil {
		return nil
	}
	b := *t
	b.Version, b.Title, b.Description, b.Default = "", "", "", nil
	if name, err := refName(t); err == nil {
		b.Ref = "#/$defs/" + name
	}
	b.Items, b.AdditionalProperties = bare(t.Items), bare(t.AdditionalProperties)
	b.Properties = make(map[string]*schemas.Type)
	for name, p := range t.Properties {
		b.Properties[name] = bare(p)
	}
	b.AnyOf, b.AllOf = bareAll(t.AnyOf), bareAll(t.AllOf)
	b.Type, b.Required = slices.Sorted(slices.Values(t.Type)), slices.Sorted(slices.Values(t.Required))
	b.Enum = slices.SortedFunc(slices.Values(t.Enum),
		func(x, y any) int { return strings.Compare(compact(x), compact(y)) })
	return &b
}

func bareAll(list []*schemas.Type) (out []*schemas.Type) {
	for _, t := range list {
		out = append(out, bare(t))
	}
	return slices.SortedFunc(slices.Values(out),
		func(x, y *schemas.Type) int { return strings.Compare(compact(x), compact(y)) })
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
