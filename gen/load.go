package main

import (
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
	keywordProse  = []string{"description", "title", "$comment", "examples", "markdownDescription"}
	keywordPlain  = []string{"$schema", "$id", "$ref", "type", "const", "enum", "format", "minimum", "maximum", "maxItems", "required"}
	keywordSchema = []string{"items", "additionalProperties"}
	keywordList   = []string{"anyOf", "oneOf", "allOf"}
	keywordMap    = []string{"properties", "definitions", "$defs"}
)

// keywordNote are annotations, which say nothing about what is valid. They are dropped, as is
// each keyword that begins with x-.
var keywordNote = []string{"default", "deprecated", "readOnly", "writeOnly", "discriminator", "contentEncoding", "contentMediaType"}

// keywordCheck are the assertions that have no form in Go: the strict decoder checks them with
// a schema. Those in keywordWhole depend on the keywords next to them.
var (
	keywordCheck = []string{
		"pattern", "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minItems", "uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties", "propertyNames",
		"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
	}
	keywordWhole = []string{"patternProperties", "prefixItems", "additionalItems", "unevaluatedProperties", "unevaluatedItems"}
)

// isNote reports whether a keyword is an annotation.
func isNote(key string) bool {
	return slices.Contains(keywordNote, key) || strings.HasPrefix(key, "x-")
}

// parsed is a schema file together with its extensions. All keywords in it are known.
type parsed struct {
	*hoister
	mcp         bool // the tables apply, because it is a schema of the Model Context Protocol
	definitions schemas.Definitions
	extension   map[string]bool // the definitions that an extension adds
}

// parseSchema reads a schema file and the files of its extensions.
func parseSchema(mcp bool, text []byte, extensions ...[]byte) (*parsed, error) {
	h, err := readDefinitions(mcp, text)
	if err != nil {
		return nil, err
	}
	definitions := h.definitions
	p := &parsed{mcp: mcp, hoister: h, extension: make(map[string]bool)}
	for _, text := range extensions {
		other, err := readDefinitions(mcp, text)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(other.definitions)) {
			more := other.definitions
			core, ok := definitions[name]
			switch {
			case !ok:
				definitions[name] = more[name]
				p.extension[name] = true
			case !equal(core, more[name]):
				return nil, fmt.Errorf("%s/%s: the extension's copy differs from the schema's definition", other.container, name)
			}
		}
	}
	simple, err := simplify(p, definitions)
	if err != nil {
		return nil, h.existing(err)
	}
	schema, err := schemas.FromJSONReader(strings.NewReader(compact(map[string]any{"$defs": simple})))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	p.definitions = schema.Definitions
	return p, nil
}

// readDefinitions returns a schema's definitions by name, the JSON pointer to them, and to
// each. Every $ref names one of them. In a schema of the Model Context Protocol every keyword is known.
func readDefinitions(mcp bool, text []byte) (*hoister, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	h := hoist(tree)
	if len(h.definitions) == 0 {
		return nil, refuse("#", "it has no definitions, and says nothing itself")
	}
	d := dialectOf(tree)
	for _, name := range slices.Sorted(maps.Keys(h.definitions)) {
		if !mcp {
			h.definitions[name] = d.schema(h.definitions[name], h.pointers[name])
		}
		if err := checkKeywords(h.definitions[name], h.pointers[name]); err != nil {
			return nil, h.existing(err)
		}
	}
	h.ignored = d.ignored
	return h, nil
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
		switch {
		case slices.Contains(keywordProse, key), slices.Contains(keywordPlain, key), isNote(key):
		case slices.Contains(keywordCheck, key), slices.Contains(keywordWhole, key):
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
			return refuse(path, "keyword %q is not known to gen", key)
		}
	}
	return nil
}

// escape returns a name escaped for a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// isNothing reports whether a schema admits no value.
func isNothing(node any) bool {
	object, _ := node.(map[string]any)
	return node == false || object["not"] != nil && compact(strip(node)) == `{"not":{}}`
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

// isAny reports whether t admits every value.
func isAny(t *schemas.Type) bool {
	return t.Ref == "" && len(t.Type) == 0 && len(t.AnyOf) == 0 && len(t.OneOf) == 0 && t.Enum == nil && t.Const == nil &&
		len(t.Properties) == 0 && len(t.Required) == 0 && t.AdditionalProperties == nil && t.Items == nil && t.Not == nil
}

// isFreeValue reports whether t admits every value, without a constraint.
func isFreeValue(t *schemas.Type) bool { return isAny(t) && constraint(t) == "" }
