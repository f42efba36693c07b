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

// What the value of each known keyword holds. A keyword that is in none of the
// groups stops the generator: go-jsonschema drops such keywords in silence.
var (
	keywordProse  = []string{"description", "title", "$comment", "examples", "markdownDescription"}
	keywordPlain  = []string{"$schema", "$ref", "type", "const", "enum", "format", "minimum", "maximum", "required"}
	keywordSchema = []string{"items", "additionalProperties"}
	keywordList   = []string{"anyOf"}
	keywordMap    = []string{"properties", "definitions", "$defs"}
)

// parseSchema reads a schema file of which every keyword is known.
func parseSchema(text []byte) (*schemas.Schema, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if err := checkKeywords(tree, "#"); err != nil {
		return nil, err
	}
	schema, err := schemas.FromJSONReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if len(schema.Definitions) == 0 {
		return nil, fmt.Errorf("read schema: it has no definitions")
	}
	return schema, nil
}

// checkKeywords walks a schema and refuses the first keyword, in order of path,
// whose meaning the generator does not carry over.
func checkKeywords(node any, path string) error {
	if _, ok := node.(bool); ok {
		return nil
	}
	object, ok := node.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want a schema, found %T", path, node)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, here := object[key], path+"/"+key
		switch {
		case slices.Contains(keywordProse, key), slices.Contains(keywordPlain, key):
		case slices.Contains(keywordSchema, key):
			if err := checkKeywords(value, here); err != nil {
				return err
			}
		case slices.Contains(keywordList, key):
			list, ok := value.([]any)
			if !ok {
				return fmt.Errorf("%s: want a list of schemas", here)
			}
			for i, v := range list {
				if err := checkKeywords(v, fmt.Sprintf("%s/%d", here, i)); err != nil {
					return err
				}
			}
		case slices.Contains(keywordMap, key):
			members, ok := value.(map[string]any)
			if !ok {
				return fmt.Errorf("%s: want a map of schemas", here)
			}
			for _, name := range slices.Sorted(maps.Keys(members)) {
				if err := checkKeywords(members[name], here+"/"+name); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("%s: keyword %q is not known to gen", path, key)
		}
	}
	return nil
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
	return t.Ref == "" && len(t.Type) == 0 && len(t.AnyOf) == 0 && t.Enum == nil && t.Const == nil &&
		len(t.Properties) == 0 && t.AdditionalProperties == nil && t.Items == nil && t.Not == nil
}
