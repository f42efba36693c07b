package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// structure returns the definitions of a schema without prose, by name.
func structure(text []byte) (map[string]any, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	definitions := hoist(tree).definitions
	for name, d := range definitions {
		definitions[name] = strip(d)
	}
	return definitions, nil
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

// tagOf returns the tag of an arm: the value of its constant member, its values, or its members; "" if it has none.
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
	return strings.Join(names, "+")
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
