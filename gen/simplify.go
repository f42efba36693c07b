package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// simplify rewrites definitions into the few forms that the builder has rules for:
//
//   - an inline copy of a definition becomes a reference to it;
//   - anyOf with constants becomes an enum;
//   - anyOf with a type and null becomes a list of types;
//   - allOf becomes one object with the members of every part.
func simplify(definitions map[string]any, container string) (map[string]any, error) {
	s := &simplifier{definitions: definitions, container: container, names: make(map[string]string), simple: make(map[string]map[string]any)}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(definitions))) {
		s.names[canonical(definitions[name])] = name // of equal definitions, the first
	}
	out := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		d, err := s.definition(name)
		if err != nil {
			return nil, err
		}
		out[name] = d
	}
	return out, nil
}

type simplifier struct {
	definitions map[string]any
	container   string
	names       map[string]string         // names of definitions by canonical form
	simple      map[string]map[string]any // finished definitions; nil while in progress
}

// canonical returns a form that schemas of equal meaning share.
func canonical(node any) string {
	object, ok := normal(node).(map[string]any)
	if !ok {
		return compact(node)
	}
	delete(object, "$schema")
	return strings.ReplaceAll(compact(object), `"#/definitions/`, `"#/$defs/`)
}

// definition returns a definition in its simple form.
func (s *simplifier) definition(name string) (map[string]any, error) {
	if d, ok := s.simple[name]; ok {
		if d == nil {
			return nil, fmt.Errorf("%s/%s: the definition contains itself", s.container, name)
		}
		return d, nil
	}
	s.simple[name] = nil
	d, err := s.schema(s.definitions[name], s.container+"/"+name)
	if err != nil {
		return nil, err
	}
	object, ok := d.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s/%s: no rule for the definition %s", s.container, name, compact(d))
	}
	s.simple[name] = object
	return object, nil
}

// inline is schema for a place where upstream may have copied a definition. Only schemas
// that need a name count as copies: two string schemas are equal by chance.
func (s *simplifier) inline(node any, path string, isArm bool) (any, error) {
	object, ok := node.(map[string]any)
	if !ok {
		return node, nil
	}
	named := isArm && (object["properties"] != nil || object["items"] != nil)
	for _, key := range []string{"anyOf", "allOf", "enum"} {
		named = named || object[key] != nil
	}
	if name, ok := s.names[canonical(node)]; ok && named {
		ref := map[string]any{"$ref": "#/$defs/" + name}
		if doc, ok := object["description"]; ok {
			ref["description"] = doc
		}
		return ref, nil
	}
	return s.schema(node, path)
}

// schema returns a schema in its simple form.
func (s *simplifier) schema(node any, path string) (any, error) {
	object, ok := node.(map[string]any)
	if !ok {
		return node, nil
	}
	out := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var err error
		switch here, value := path+"/"+key, object[key]; {
		case key == "$schema", key == "propertyNames":
		case key == "additionalProperties" && isNothing(value):
			out[key] = false
		case slices.Contains(keywordSchema, key):
			out[key], err = s.inline(value, here, false)
		case slices.Contains(keywordMap, key):
			members := make(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(value.(map[string]any))) {
				if members[name], err = s.inline(value.(map[string]any)[name], here+"/"+escape(name), false); err != nil {
					return nil, err
				}
			}
			out[key] = members
		case slices.Contains(keywordList, key):
			list := slices.Clone(value.([]any))
			for i, v := range list {
				if list[i], err = s.inline(v, fmt.Sprintf("%s/%d", here, i), true); err != nil {
					return nil, err
				}
			}
			out[key] = list
		default:
			out[key] = value
		}
		if err != nil {
			return nil, err
		}
	}
	if arms, ok := out["anyOf"].([]any); ok {
		out = simpleChoice(out, arms)
	}
	if parts, ok := out["allOf"].([]any); ok {
		return s.merge(out, parts, path)
	}
	return out, nil
}

// simpleChoice turns anyOf with constants into an enum, and anyOf with a type and null into
// a list of types.
func simpleChoice(node map[string]any, arms []any) map[string]any {
	var values []any
	for _, a := range arms {
		arm, _ := a.(map[string]any)
		if value, ok := arm["const"].(string); ok && len(arm) == 2 && arm["type"] == "string" {
			values = append(values, value)
		}
	}
	out := maps.Clone(node)
	delete(out, "anyOf")
	if len(values) == len(arms) {
		out["type"], out["enum"] = "string", values
		return out
	}
	if len(arms) == 2 && compact(arms[1]) == `{"type":"null"}` {
		if arm, ok := arms[0].(map[string]any); ok {
			if kind, ok := arm["type"].(string); ok && kind != "object" && kind != "array" {
				maps.Copy(out, arm)
				out["type"] = []any{kind, "null"}
				return out
			}
		}
	}
	return node
}

// merge returns one object with the members of all parts. A part that is a union is kept as
// a union next to the members.
func (s *simplifier) merge(node map[string]any, parts []any, path string) (any, error) {
	properties, required := make(map[string]any), []any{}
	out := map[string]any{"type": "object", "properties": properties}
	for _, key := range keywordProse {
		if text, ok := node[key]; ok {
			out[key] = text
		}
	}
	for i, part := range parts {
		here := fmt.Sprintf("%s/allOf/%d", path, i)
		object, err := s.resolve(part, here)
		if err != nil {
			return nil, err
		}
		switch {
		case object["anyOf"] != nil && out["anyOf"] == nil && isRef(part):
			out["anyOf"] = []any{part}
			continue
		case object["type"] != "object" || object["anyOf"] != nil:
			return nil, fmt.Errorf("%s: no rule for a part that is neither an object nor a reference to a union", here)
		case object["additionalProperties"] != nil && !isTrue(object["additionalProperties"]):
			return nil, fmt.Errorf("%s: no rule for a part with constraints on additional members", here)
		}
		members, _ := object["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if properties[name], err = refine(properties[name], members[name]); err != nil {
				return nil, fmt.Errorf("%s/properties/%s: %w", here, escape(name), err)
			}
		}
		list, _ := object["required"].([]any)
		for _, name := range list {
			if !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	for key := range node {
		if key != "allOf" && key != "type" && out[key] == nil {
			return nil, fmt.Errorf("%s: no rule for %s next to allOf", path, key)
		}
	}
	return out, nil
}

// resolve follows references.
func (s *simplifier) resolve(node any, path string) (map[string]any, error) {
	object, _ := node.(map[string]any)
	for isRef(object) {
		name := object["$ref"].(string)
		name = name[strings.LastIndex(name, "/")+1:]
		if s.definitions[name] == nil {
			return nil, fmt.Errorf("%s: %s is not defined", path, name)
		}
		var err error
		if object, err = s.definition(name); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func isRef(node any) bool {
	object, _ := node.(map[string]any)
	_, ok := object["$ref"].(string)
	return ok
}

// isTrue reports whether a schema admits every value.
func isTrue(node any) bool {
	object, ok := node.(map[string]any)
	return node == true || ok && len(object) == 0
}

// refine returns the stricter of two schemas for the same member. It fails if neither
// implies the other.
func refine(a, b any) (any, error) {
	x, y := canonical(strip(a)), canonical(strip(b))
	switch {
	case a == nil, x == y, admits(a, b):
		return b, nil
	case admits(b, a):
		return a, nil
	}
	return nil, fmt.Errorf("no rule for what both %s and %s admit", x, y)
}

// admits reports whether a restricts nothing but the type, and b has that type.
func admits(a, b any) bool {
	x, _ := strip(a).(map[string]any)
	y, _ := b.(map[string]any)
	if x == nil || y == nil {
		return false
	}
	if isTrue(x["additionalProperties"]) {
		delete(x, "additionalProperties")
	}
	_, isType := x["type"].(string)
	return len(x) == 0 || isType && len(x) == 1 && (x["type"] == y["type"] || x["type"] == "object" && isRef(b))
}
