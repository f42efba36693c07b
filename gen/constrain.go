package main

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// constraintKey is the keyword that keeps a constraint: a schema, as text, that the strict decoder
// checks a value with. go-jsonschema reserves it for generators.
const constraintKey = "goJSONSchema"

// constraintOf returns the constraint of a simple schema, or "".
func constraintOf(node map[string]any) string {
	kept, _ := node[constraintKey].(map[string]any)
	text, _ := kept["type"].(string)
	return text
}

// addConstraint adds a constraint to a simple schema.
func addConstraint(node map[string]any, text string) {
	if before := constraintOf(node); before != "" && before != text {
		text = `{"allOf":[` + before + "," + text + "]}"
	}
	node[constraintKey] = map[string]any{"type": text}
}

// constrain takes from a schema what has no form in Go, and keeps it as its constraint. What is
// left is a weaker schema that has one.
func (s *simplifier) constrain(node map[string]any, path string) (map[string]any, error) {
	out, check := maps.Clone(node), make(map[string]any)
	whole := ""
	for key, value := range node {
		switch {
		case key == "propertyNames" && compact(strip(value)) == `{"type":"string"}`: // true of every name
			delete(out, key)
		case slices.Contains(keywordCheck, key):
			check[key] = value
			delete(out, key)
		case slices.Contains(keywordWhole, key):
			whole = key
			delete(out, key)
		}
	}
	if whole != "" {
		check = maps.Clone(node)
		switch {
		case node["prefixItems"] != nil:
			out["items"] = true
		case node["patternProperties"] != nil:
			delete(out, "additionalProperties")
		}
	}
	s.values(out, check)
	bounds(out, check)
	members(out, check)
	if len(check) == 0 {
		return out, nil
	}
	return out, s.keep(out, check, path)
}

// keep adds what check admits to the constraint of a simple schema.
func (s *simplifier) keep(out, check map[string]any, path string) error {
	full, err := s.inlineRefs(check, nil, path)
	if err != nil {
		return err
	}
	addConstraint(out, compact(full))
	return checkable(compact(full), path)
}

// values moves constants and enums that are not strings to check.
func (s *simplifier) values(out, check map[string]any) {
	if c, ok := out["const"]; ok {
		switch n := c.(type) {
		case string:
			if list, ok := out["type"].([]any); out["type"] == nil || ok && slices.Contains(list, "string") {
				out["type"] = "string"
			}
			return
		case float64:
			if out["type"] == "integer" && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
				return
			}
		}
		delete(out, "const")
		check["const"] = c
		if kind := kindOf(c); out["type"] == nil && kind != "" {
			out["type"] = kind
		}
		return
	}
	list, ok := out["enum"].([]any)
	if !ok {
		return
	}
	kinds := make(map[string]bool)
	for _, v := range list {
		kinds[kindOf(v)] = true
	}
	types, isList := out["type"].([]any)
	if len(kinds) == 1 && kinds["string"] && (out["type"] == nil || out["type"] == "string" || isList && slices.Contains(types, "string")) {
		out["type"] = "string"
		return
	}
	delete(out, "enum")
	if len(kinds) == 2 && kinds["string"] && kinds["null"] {
		texts := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil })
		delete(out, "type")
		out["anyOf"] = []any{map[string]any{"type": "string", "enum": texts}, map[string]any{"type": "null"}}
		return
	}
	check["enum"] = list
	if len(kinds) == 1 && out["type"] == nil {
		out["type"] = kindOf(list[0])
	} else if out["type"] == nil || isList {
		if isList {
			check["type"] = out["type"]
		}
		delete(out, "type")
	}
}

// kindOf returns the type of a JSON value, or "" for a list or an object.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	}
	return ""
}

// bounds moves the bounds of numbers to check, unless they are those of an integer or both of a
// number, and other limits of lists than a maximum.
func bounds(out, check map[string]any) {
	kind := out["type"]
	if list, ok := kind.([]any); ok && len(list) == 2 && list[1] == "null" {
		kind = list[0]
	}
	low, isLow := out["minimum"].(float64)
	high, isHigh := out["maximum"].(float64)
	whole := func(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<53 }
	if kind == "integer" && whole(low) && whole(high) || kind == "number" && isLow && isHigh {
		return
	}
	for key, ok := range map[string]bool{"minimum": isLow, "maximum": isHigh} {
		if ok {
			check[key] = out[key]
			delete(out, key)
		}
	}
	if n, ok := out["maxItems"].(float64); ok && (kind != "array" || n < 1) {
		check["maxItems"] = n
		delete(out, "maxItems")
	}
}

// members moves members that must be absent to check, adds those that are required but not
// described, and makes an optional constant number an enum.
func members(out, check map[string]any) {
	described, _ := out["properties"].(map[string]any)
	required, _ := out["required"].([]any)
	all := maps.Clone(described)
	absent := make(map[string]any)
	for name, m := range described {
		member, _ := m.(map[string]any)
		if isNothing(m) {
			absent[name] = false
			delete(all, name)
		} else if _, ok := member["const"].(float64); ok && !slices.Contains(required, any(name)) {
			enum := maps.Clone(member)
			enum["enum"] = []any{member["const"]}
			delete(enum, "const")
			all[name] = enum
		}
	}
	for _, name := range required {
		if text, ok := name.(string); ok && all[text] == nil && absent[text] == nil {
			if all == nil {
				all = make(map[string]any)
			}
			all[text] = map[string]any{}
			if rest, ok := out["additionalProperties"].(map[string]any); ok {
				all[text] = rest
			}
		}
	}
	if len(absent) > 0 && check["properties"] == nil {
		check["properties"] = absent
	}
	if all != nil {
		out["properties"] = all
	}
}

// inlineRefs returns a schema in which the definitions stand in the place of references, without
// annotations.
func (s *simplifier) inlineRefs(node any, within []string, path string) (any, error) {
	switch node := node.(type) {
	case []any:
		list := make([]any, len(node))
		for i, v := range node {
			var err error
			if list[i], err = s.inlineRefs(v, within, path); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/$defs/")
			d, ok := s.definitions[name]
			if !ok || slices.Contains(within, name) {
				return nil, refuse(path, "no rule for a condition that refers to %s, which is recursive or unknown", name)
			}
			target, err := s.inlineRefs(d, append(slices.Clone(within), name), path)
			if err != nil || len(node) == 1 {
				return target, err
			}
			rest := maps.Clone(node)
			delete(rest, "$ref")
			rest["allOf"] = append([]any{target}, asList(rest["allOf"])...)
			return s.inlineRefs(rest, within, path)
		}
		out := make(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(node)) { // of two faults the same is reported each time
			v := node[key]
			var err error
			switch {
			case slices.Contains(keywordProse, key), isNote(key), key == "format", key == "$schema", key == "$id":
			case key == "const", key == "enum", key == "required", key == "dependentRequired":
				out[key] = v
			case slices.Contains(keywordMap, key), key == "patternProperties", key == "dependentSchemas":
				inner := make(map[string]any)
				members := v.(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(members)) {
					if inner[name], err = s.inlineRefs(members[name], within, path); err != nil {
						return nil, err
					}
				}
				out[key] = inner
			default:
				if out[key], err = s.inlineRefs(v, within, path); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	return node, nil
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
