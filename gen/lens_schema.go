package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// bundleOf reads a schema whose definitions may be nested by version, as those of Codex are, and
// returns them without prose, by name.
func bundleOf(text []byte) (map[string]any, error) {
	var schema struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	all := map[string]any{}
	add := func(name string, d any) error {
		d = strip(localRefs(d))
		if old, ok := all[name]; ok && canonical(old) != canonical(d) {
			return fmt.Errorf("two definitions are named %s", name)
		}
		all[name] = d
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Definitions)) {
		inner, nested := schema.Definitions[name].(map[string]any)
		if nested = nested && strings.HasPrefix(name, "v") && inner["type"] == nil; nested {
			for _, n := range slices.Sorted(maps.Keys(inner)) {
				if err := add(n, inner[n]); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := add(name, schema.Definitions[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// localRefs returns a schema whose references have no version in them.
func localRefs(node any) any {
	switch v := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if ref, ok := value.(string); ok && key == "$ref" {
				value = "#/definitions/" + path.Base(ref)
			}
			out[key] = localRefs(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = localRefs(value)
		}
		return out
	}
	return node
}

// unwrap follows references and choices of one, and returns the name of the last definition.
func unwrap(definitions map[string]any, node any) (any, string) {
	node, _, name := plain(definitions, node)
	return node, name
}

// plain is unwrap that also leaves out null, and reports whether it was there.
func plain(definitions map[string]any, node any) (out any, null bool, name string) {
	for range 20 {
		schema, ok := node.(map[string]any)
		if !ok {
			return node, null, name
		}
		if ref, ok := schema["$ref"].(string); ok {
			name = path.Base(ref)
			node = definitions[name]
			continue
		}
		if all := listOf(schema, "allOf"); len(all) == 1 {
			node = all[0]
			continue
		}
		if types, ok := schema["type"].([]any); ok && len(types) == 2 && slices.Contains(types, any("null")) {
			schema = maps.Clone(schema)
			schema["type"] = types[0]
			if types[0] == "null" {
				schema["type"] = types[1]
			}
			node, null = schema, true
			continue
		}
		arms := listOf(schema, "anyOf")
		if i := slices.IndexFunc(arms, isNull); len(arms) == 2 && i >= 0 {
			node, null = arms[1-i], true
			continue
		}
		return node, null, name
	}
	return node, null, name
}

func isNull(node any) bool {
	schema, _ := node.(map[string]any)
	return schema["type"] == "null"
}

// listOf returns a member of a schema that is a list.
func listOf(node any, key string) []any {
	schema, _ := node.(map[string]any)
	list, _ := schema[key].([]any)
	return list
}

func stringsOf(node any, key string) (all []string) {
	for _, v := range listOf(node, key) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// objectMembers returns the members of an object by name.
func objectMembers(node any) map[string]any {
	schema, _ := node.(map[string]any)
	members, _ := schema["properties"].(map[string]any)
	return members
}

func memberOf(node any, name string) any { return objectMembers(node)[name] }

// armsOf returns the values and objects that a schema is a choice of.
func armsOf(node any) (arms []any) {
	choice := slices.Concat(listOf(node, "oneOf"), listOf(node, "anyOf"))
	if len(choice) == 0 {
		if values := listOf(node, "enum"); len(values) > 0 {
			return values
		}
		return []any{node}
	}
	for _, c := range choice {
		arms = append(arms, armsOf(c)...)
	}
	return arms
}

// enumOf returns the strings of a schema's enums, also those in a choice.
func enumOf(node any) (values []string) {
	values = stringsOf(node, "enum")
	for _, arm := range slices.Concat(listOf(node, "oneOf"), listOf(node, "anyOf")) {
		values = append(values, enumOf(arm)...)
	}
	return values
}

// armOf returns the arm of a union that has a tag, and the member that the tag is in.
func armOf(node any, tag string) (by string, arm any) {
	for _, arm := range listOf(node, "oneOf") {
		for _, name := range slices.Sorted(maps.Keys(objectMembers(arm))) {
			if slices.Equal(enumOf(memberOf(arm, name)), []string{tag}) {
				return name, arm
			}
		}
	}
	return "", nil
}

// tagOf returns the tag of an arm: the value of its constant member, its only value, or its only
// member.
func tagOf(arm any) string {
	names := slices.Sorted(maps.Keys(objectMembers(arm)))
	for _, name := range names {
		if values := enumOf(memberOf(arm, name)); len(values) == 1 && memberOf(arm, name).(map[string]any)["type"] == "string" {
			return values[0]
		}
	}
	if values := enumOf(arm); len(values) > 0 {
		return strings.Join(values, "|")
	}
	if len(names) > 0 {
		return strings.Join(names, "+")
	}
	return canonical(arm)
}

// refsOf returns the definitions that a schema refers to.
func refsOf(node any) (names []string) {
	switch v := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if ref, ok := v[key].(string); ok && key == "$ref" {
				names = append(names, path.Base(ref))
			} else {
				names = append(names, refsOf(v[key])...)
			}
		}
	case []any:
		for _, value := range v {
			names = append(names, refsOf(value)...)
		}
	}
	return names
}
