package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// simplify rewrites definitions into the few forms that the builder has rules for:
//
//   - an inline copy of a definition becomes a reference to it;
//   - a choice of constants becomes an enum;
//   - a choice with null becomes a list of types, or a choice with null as its last arm;
//   - a list of types becomes a choice, unless it is one type and null;
//   - allOf becomes one object with the members of every part;
//   - a choice next to members becomes a choice of objects with these members;
//   - assertions without a form in Go become a text for the strict decoder, see constrain.
func simplify(p *parsed, definitions map[string]any) (map[string]any, error) {
	s := &simplifier{parsed: p, definitions: definitions, names: make(map[string]string), simple: make(map[string]map[string]any)}
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
	*parsed
	definitions map[string]any
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

// at returns the JSON pointer to a definition.
func (s *simplifier) at(name string) string {
	return cmp.Or(s.pointers[name], s.container+"/"+escape(name))
}

// definition returns a definition in its simple form.
func (s *simplifier) definition(name string) (map[string]any, error) {
	if d, ok := s.simple[name]; ok {
		if d == nil {
			return nil, refuse(s.at(name), "the definition contains itself")
		}
		return d, nil
	}
	s.simple[name] = nil
	d, err := s.schema(s.definitions[name], s.at(name))
	if err != nil {
		delete(s.simple, name) // the caller may have another rule
		return nil, err
	}
	object, ok := d.(map[string]any)
	if d == true {
		object, ok = map[string]any{}, true
	}
	if err := checkTyped(d, s.at(name)); err != nil {
		return nil, err
	}
	if !ok {
		return nil, refuse(s.at(name), "no rule for the definition %s", compact(d))
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
	for _, key := range []string{"anyOf", "oneOf", "allOf", "enum"} {
		named = named || object[key] != nil
	}
	if !named {
		return s.schema(node, path)
	}
	if name, ok := s.names[canonical(node)]; ok {
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
	if beside := s.besideRef(object); beside != nil {
		return s.schema(beside, path)
	}
	given := object
	object, err := s.constrain(object, path)
	if err != nil {
		return nil, err
	}
	out := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var err error
		switch here, value := path+"/"+key, object[key]; {
		case key == "$schema", key == "$id", isNote(key):
		case key == "additionalProperties" && isNothing(value):
			out[key] = false
		case slices.Contains(keywordSchema, key):
			out[key], err = s.typed(value, here)
		case slices.Contains(keywordMap, key):
			members := make(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(value.(map[string]any))) {
				if members[name], err = s.typed(value.(map[string]any)[name], here+"/"+escape(name)); err != nil {
					return nil, err
				}
			}
			out[key] = members
		case key == "allOf":
			out[key] = value // merge reads its parts
		case slices.Contains(keywordList, key):
			var list []any
			for i, v := range value.([]any) {
				arm, err := s.inline(v, fmt.Sprintf("%s/%d", here, i), true)
				if err != nil {
					return nil, err
				}
				if !isNothing(v) {
					list = append(list, arm)
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
	if out["allOf"] == nil {
		out = simpleTypes(out)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		arms, ok := out[key].([]any)
		if !ok {
			continue
		}
		if out["properties"] != nil || out["required"] != nil || out["allOf"] != nil || out["anyOf"] != nil && out["oneOf"] != nil || !s.implied(out, arms, path) {
			return s.distribute(object, key, path)
		}
		for i, a := range arms {
			if err := checkTyped(a, fmt.Sprintf("%s/%s/%d", path, key, i)); err != nil {
				return nil, err
			}
		}
		out = simpleChoice(out, key, arms)
	}
	if parts, ok := out["allOf"].([]any); ok {
		merged, err := s.merge(out, parts, path)
		if err != nil {
			return s.weaken(given, err, path)
		}
		return merged, nil
	}
	return out, nil
}

// structural are the keywords with rules that need no constraint.
var structural = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "minimum", "maximum", "maxItems",
}

// besideRef returns a schema with structural keywords next to $ref as an allOf of both, and nil for any other.
func (s *simplifier) besideRef(node map[string]any) map[string]any {
	if !isRef(node) || !slices.ContainsFunc(append(structural, keywordWhole...), func(key string) bool { return node[key] != nil }) {
		return nil
	}
	out, rest := make(map[string]any), make(map[string]any)
	for key, value := range node {
		switch {
		case slices.Contains(keywordProse, key):
			out[key] = value
		case key != "$ref" && key != "allOf":
			rest[key] = value
		}
	}
	out["allOf"] = append([]any{map[string]any{"$ref": node["$ref"]}}, asList(node["allOf"])...)
	if len(rest) > 0 {
		out["allOf"] = append(out["allOf"].([]any), rest)
	}
	return out
}

// implied reports whether each arm of a choice implies the type next to it, which it then removes.
func (s *simplifier) implied(node map[string]any, arms []any, path string) bool {
	kind := node["type"]
	for _, key := range []string{"enum", "const", "items", "additionalProperties", "$ref"} {
		if node[key] != nil && !s.mcp {
			return false
		}
	}
	if kind == nil || s.mcp {
		return true
	}
	for _, a := range arms {
		if arm, err := s.resolve(a, path); err != nil || compact(arm["type"]) != compact(kind) {
			return false
		}
	}
	delete(node, "type")
	return true
}

// weaken returns the reference of an allOf without a common form, with the whole schema as its constraint.
func (s *simplifier) weaken(node map[string]any, cause error, path string) (any, error) {
	for _, part := range asList(node["allOf"]) {
		if ref, _ := strip(part).(map[string]any); isRef(ref) && !s.mcp {
			out := map[string]any{"$ref": ref["$ref"]}
			if s.keep(out, node, path) == nil {
				return out, nil
			}
		}
	}
	return nil, cause
}

// typed is inline for a place where a schema must say which type its members belong to.
func (s *simplifier) typed(node any, path string) (any, error) {
	out, err := s.inline(node, path, false)
	if err != nil {
		return nil, err
	}
	return out, checkTyped(out, path)
}

func checkTyped(node any, path string) error {
	object, _ := node.(map[string]any)
	if object["type"] != nil || object["$ref"] != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(keywordOf)) {
		if kind := keywordOf[key]; object[key] != nil && kind != "string" {
			return refuse(path, "no rule for %s of a value that need not be an %s", key, kind)
		}
	}
	return nil
}

// simpleTypes turns a list of types into a choice, unless the second type is null.
func simpleTypes(node map[string]any) map[string]any {
	types, ok := node["type"].([]any)
	if !ok {
		return node
	}
	if i := slices.Index(types, "null"); i >= 0 && len(types) == 2 { // null comes last
		types = []any{types[1-i], "null"}
	}
	out := maps.Clone(node)
	if out["type"] = types; len(types) == 1 {
		out["type"] = types[0]
		return out
	}
	scalar := !slices.ContainsFunc(types, func(t any) bool { return t == "object" || t == "array" })
	if scalar && (len(types) > 2 || types[1] != "null") && node["enum"] == nil && node["const"] == nil || scalar && types[1] == "null" {
		return out // the builder has rules for these
	}
	var arms []any
	for _, kind := range types {
		arm := make(map[string]any)
		for key, value := range node {
			if of := keywordOf[key]; of == "" && key != "type" && !slices.Contains(keywordProse, key) || of != "" && of == kind {
				arm[key] = value
			}
		}
		if arm["type"] = kind; kind == "null" {
			arm = map[string]any{"type": kind}
		}
		arms = append(arms, arm)
	}
	choice := map[string]any{"anyOf": arms}
	for _, key := range keywordProse {
		if text, ok := node[key]; ok {
			choice[key] = text
		}
	}
	return simpleChoice(choice, "anyOf", arms)
}

// keywordOf is the type to whose values a keyword applies.
var keywordOf = map[string]string{
	"properties": "object", "additionalProperties": "object", "required": "object", "items": "array", "maxItems": "array", "format": "string",
}

// simpleChoice turns a choice of constants into an enum, a choice with a scalar type and
// null into a list of types, and puts null last in other choices.
func simpleChoice(node map[string]any, key string, arms []any) map[string]any {
	var values []any
	var rest []any
	null := false
	for _, a := range arms {
		arm, _ := a.(map[string]any)
		bare, _ := strip(arm).(map[string]any)
		if len(bare) == 1 && bare["type"] == "null" {
			null = true
			continue
		}
		rest = append(rest, a)
		if value, ok := bare["const"].(string); ok && len(bare) == 2 && bare["type"] == "string" {
			values = append(values, value)
		}
		if list, ok := bare["enum"].([]any); ok && len(bare) == 2 && bare["type"] == "string" && !slices.ContainsFunc(list, func(v any) bool { return slices.Contains(values, v) }) {
			values = append(values, list...)
		} else if ok {
			values = append(values, nil)
		}
	}
	isEnum := len(values) >= len(rest) && len(rest) > 0 && !slices.Contains(values, nil)
	for _, a := range rest {
		arm, _ := strip(a).(map[string]any)
		isEnum = isEnum && arm != nil && (arm["const"] != nil || arm["enum"] != nil) && arm["type"] == "string"
	}
	out := maps.Clone(node)
	delete(out, key)
	switch {
	case isEnum && !null:
		out["type"], out["enum"] = "string", values
		return out
	case isEnum:
		rest = []any{map[string]any{"type": "string", "enum": values}}
	case len(rest) == 1 && len(arms) == 1 && len(strip(node).(map[string]any)) == 1:
		if arm, ok := rest[0].(map[string]any); ok && !isRef(arm) {
			for k, v := range arm {
				if out[k] == nil {
					out[k] = v
				}
			}
			return out
		}
	}
	if !null {
		out[key] = rest
		return out
	}
	if len(rest) == 1 {
		if arm, ok := rest[0].(map[string]any); ok {
			if kind, ok := arm["type"].(string); ok && kind != "object" && kind != "array" && arm["enum"] == nil && arm["const"] == nil {
				for k, v := range arm {
					if out[k] == nil {
						out[k] = v
					}
				}
				out["type"] = []any{kind, "null"}
				return out
			}
		}
		out["anyOf"] = []any{rest[0], map[string]any{"type": "null"}}
		return out
	}
	inner := maps.Clone(out)
	inner[key] = rest
	out = map[string]any{"anyOf": []any{inner, map[string]any{"type": "null"}}}
	for _, k := range keywordProse {
		if text, ok := inner[k]; ok {
			out[k] = text
		}
	}
	return out
}

// distribute turns a choice next to other keywords into a choice of schemas with these.
func (s *simplifier) distribute(node map[string]any, key, path string) (any, error) {
	arms, _ := node[key].([]any)
	base := maps.Clone(node)
	delete(base, key)
	out := make(map[string]any)
	for _, k := range append(slices.Clone(keywordProse), constraintKey) {
		if text, ok := base[k]; ok {
			out[k] = text
			delete(base, k)
		}
	}
	var list []any
	for i, a := range arms {
		merged := map[string]any{"allOf": []any{base, a}}
		if arm, ok := a.(map[string]any); ok {
			for _, k := range keywordProse {
				if text, ok := arm[k]; ok {
					merged[k] = text
				}
			}
		}
		arm, err := s.schema(merged, fmt.Sprintf("%s/%s/%d", path, key, i))
		if err != nil {
			return nil, err
		}
		if !isNothing(arm) {
			list = append(list, arm)
		}
	}
	if len(list) == 0 {
		return map[string]any{"not": map[string]any{}}, nil
	}
	out[key] = list
	return simpleChoice(out, key, list), nil
}

// merge returns one schema for all parts: one object with the members of every part, or a choice
// of such objects if a part is one.
func (s *simplifier) merge(node map[string]any, parts []any, path string) (any, error) {
	prose, base := make(map[string]any), make(map[string]any)
	for key, value := range node {
		switch {
		case slices.Contains(keywordProse, key):
			prose[key] = value
		case key != "allOf":
			base[key] = value
		}
	}
	var shapes []any // the parts that are more than a constraint
	var checks []string
	places := make(map[int]string)
	for i, part := range append(slices.Clone(parts), base) {
		here := fmt.Sprintf("%s/allOf/%d", path, i)
		if i == len(parts) {
			here = path
		}
		plain, ok := part.(map[string]any)
		if !ok && part != true {
			return nil, refuse(here, "no rule for the part %s", compact(part))
		}
		if !isRef(part) && i < len(parts) {
			inner, err := s.inline(plain, here, true)
			if err != nil {
				return nil, err
			}
			plain, part = inner.(map[string]any), inner
		}
		plain = maps.Clone(plain)
		if text := constraintOf(plain); text != "" {
			checks = append(checks, text)
			delete(plain, constraintKey)
		}
		if bare, _ := strip(plain).(map[string]any); len(bare) > 0 {
			places[len(shapes)] = here
			shapes = append(shapes, plain)
		}
	}
	if s.disjoint(shapes, path) {
		return map[string]any{"not": map[string]any{}}, nil // nothing is valid for all parts
	}
	shapes, places = s.telling(shapes, places, path)
	var out map[string]any
	var err error
	switch len(shapes) {
	case 0:
		out = make(map[string]any)
	case 1:
		out = maps.Clone(shapes[0].(map[string]any))
	default:
		if out, err = s.join(shapes, places, path); err != nil {
			return nil, err
		}
	}
	maps.Copy(out, prose)
	for _, text := range checks {
		addConstraint(out, text)
	}
	return out, nil
}

// telling returns the parts without those that only repeat the type of another one, and their places.
func (s *simplifier) telling(parts []any, places map[int]string, path string) (kept []any, at map[int]string) {
	if s.mcp {
		return parts, places
	}
	at = make(map[int]string)
	for i, p := range parts {
		bare, _ := strip(p).(map[string]any)
		repeats := func(j int, other any) bool {
			if same := compact(strip(other)) == compact(bare); same {
				return j < i
			}
			full, err := s.resolve(other, path)
			list, isList := bare["type"].([]any)
			return err == nil && len(bare) == 1 && bare["type"] != nil && full["type"] != nil &&
				(!isList && full["type"] == bare["type"] || isList && slices.Contains(list, full["type"]))
		}
		found := false
		for j, other := range parts {
			found = found || j != i && repeats(j, other)
		}
		if !found {
			at[len(kept)] = places[i]
			kept = append(kept, p)
		}
	}
	return kept, at
}

// disjoint reports whether two parts have no type in common.
func (s *simplifier) disjoint(parts []any, path string) bool {
	var common []any // nil for any type
	for _, p := range parts {
		object, err := s.resolve(p, path)
		list, _ := object["type"].([]any)
		if kind, ok := object["type"].(string); ok {
			list = []any{kind}
		}
		switch {
		case s.mcp || err != nil || slices.Contains(list, "number") || slices.Contains(common, "number"): // it contains integer
			return false
		case list == nil:
		case common == nil:
			common = list
		default:
			if common = slices.DeleteFunc(slices.Clone(common), func(k any) bool { return !slices.Contains(list, k) }); len(common) == 0 {
				return true
			}
		}
	}
	return false
}

// join is merge for several parts. Places are the pointers to them.
func (s *simplifier) join(parts []any, places map[int]string, path string) (map[string]any, error) {
	properties, required := make(map[string]any), []any{}
	out := map[string]any{"type": "object", "properties": properties}
	isObject := false
	var closed []map[string]any // the members of parts that have no others
	for i, part := range parts {
		here := places[i]
		object, err := s.resolve(part, here)
		if err != nil {
			return nil, err
		}
		key := "anyOf"
		if object["oneOf"] != nil {
			key = "oneOf"
		}
		if object[key] != nil {
			if name, ok := part.(map[string]any)["$ref"].(string); ok && s.mcp && out["anyOf"] == nil && besideNames[strings.TrimPrefix(name, "#/$defs/")].name != "" {
				out["anyOf"] = []any{part}
				continue
			}
			rest := append(slices.Clone(parts[:i]), parts[i+1:]...)
			choice, err := s.distribute(map[string]any{"allOf": rest, key: object[key]}, key, path)
			if err != nil {
				return nil, err
			}
			return choice.(map[string]any), nil
		}
		if text := constraintOf(object); text != "" {
			addConstraint(out, text)
		}
		if _, ok := object["type"]; ok || object["properties"] == nil && object["required"] == nil {
			if object["type"] != "object" {
				return nil, refuse(here, "no rule for a part that is neither an object nor a reference to a union")
			}
			isObject = true
		}
		members, _ := object["properties"].(map[string]any)
		if extra := object["additionalProperties"]; extra == false {
			closed = append(closed, members)
		} else if extra != nil && !isTrue(extra) {
			return nil, refuse(here, "no rule for a part with constraints on additional members")
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if properties[name], err = s.refine(properties[name], members[name], here+"/properties/"+escape(name)); err != nil {
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
	for _, only := range closed {
		out["additionalProperties"] = false
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if _, ok := only[name]; !ok && slices.Contains(required, any(name)) {
				return map[string]any{"not": map[string]any{}}, nil // nothing is valid for all parts
			} else if !ok {
				delete(properties, name)
			}
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if !isObject {
		delete(out, "type")
	}
	return out, nil
}

// resolve follows references.
func (s *simplifier) resolve(node any, path string) (map[string]any, error) {
	object, _ := node.(map[string]any)
	for range len(s.definitions) + 1 {
		if !isRef(object) {
			return object, nil
		}
		name, ok := strings.CutPrefix(object["$ref"].(string), "#/$defs/")
		if !ok {
			return nil, refuse(path, "$ref %q does not name a definition of this schema", object["$ref"])
		}
		if s.definitions[name] == nil {
			return nil, refuse(path, "%s is not defined", name)
		}
		var err error
		if object, err = s.definition(name); err != nil {
			return nil, err
		}
	}
	return nil, refuse(path, "the definition contains itself")
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
