package main

import (
	"fmt"
	"slices"
)

// refine returns the stricter of two schemas for the same member, or an object with the members
// of both. It fails if there is no rule for what both admit.
func (s *simplifier) refine(a, b any, path string) (any, error) {
	x, y := canonical(strip(a)), canonical(strip(b))
	p, err1 := s.resolve(a, path)
	q, err2 := s.resolve(b, path)
	switch {
	case a == nil, x == y, s.admits(a, b, q):
		return b, nil
	case s.admits(b, a, p):
		return a, nil
	}
	if err1 == nil && err2 == nil && p["type"] == "object" && q["type"] == "object" {
		if out, err := s.join([]any{a, b}, map[int]string{0: path, 1: path}, path); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("no rule for what both %s and %s admit", x, y)
}

// admits reports whether a restricts nothing but the type, and b, which is a reference to full if it is one,
// has such a type.
func (s *simplifier) admits(a, b any, full map[string]any) bool {
	x, _ := strip(a).(map[string]any)
	if _, ok := b.(map[string]any); x == nil || !ok {
		return false
	}
	if isTrue(x["additionalProperties"]) {
		delete(x, "additionalProperties")
	}
	if len(x) == 0 {
		return true
	}
	kinds := bareTypes(x)
	return kinds != nil && s.hasOnly(full, kinds, 0)
}

// hasOnly reports whether all values that a schema admits have one of the types.
func (s *simplifier) hasOnly(node map[string]any, kinds []any, depth int) bool {
	list, isList := node["type"].([]any)
	if node["type"] != nil && !isList {
		return slices.Contains(kinds, node["type"])
	}
	if isList {
		return !slices.ContainsFunc(list, func(k any) bool { return !slices.Contains(kinds, k) })
	}
	arms := append(asList(node["anyOf"]), asList(node["oneOf"])...)
	return len(arms) > 0 && depth < 10 && !slices.ContainsFunc(arms, func(a any) bool {
		arm, err := s.resolve(a, "")
		return err != nil || !s.hasOnly(arm, kinds, depth+1)
	})
}

// bareTypes returns the types of a schema that restricts nothing else, or nil.
func bareTypes(node map[string]any) (types []any) {
	list, isList := node["anyOf"].([]any)
	switch kind := node["type"].(type) {
	case string:
		types = []any{kind}
	case []any:
		types = kind
	}
	if len(node) != 1 || types != nil || !isList {
		return map[bool][]any{true: types}[len(node) == 1]
	}
	for _, arm := range list {
		inner, _ := arm.(map[string]any)
		more := bareTypes(inner)
		if more == nil {
			return nil
		}
		types = append(types, more...)
	}
	return types
}
