package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// simplify rewrites the definitions into the few forms that the builder has rules for:
//
//   - an inline copy of a definition becomes a reference to it;
//   - a choice of constants becomes an enum;
//   - a choice of a scalar type and null becomes a list of types;
//   - allOf becomes one object with the members of every part.
func (p *parsed) simplify() error {
	s := &simplifier{parsed: p, names: make(map[string]string), simple: make(map[string]*schemas.Type)}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(p.definitions))) {
		s.names[form(p.definitions[name])] = name // of equal definitions, the first
	}
	for _, name := range slices.Sorted(maps.Keys(p.definitions)) {
		if _, err := s.definition(name); err != nil {
			return err
		}
	}
	p.definitions = s.simple
	return nil
}

type simplifier struct {
	*parsed
	names  map[string]string        // names of definitions by form
	simple map[string]*schemas.Type // finished definitions; nil while in progress
}

// definition returns a definition in its simple form.
func (s *simplifier) definition(name string) (*schemas.Type, error) {
	path := s.container + "/" + escape(name)
	if d, ok := s.simple[name]; ok {
		if d == nil {
			return nil, refuse(path, "the definition contains itself")
		}
		return d, nil
	}
	s.simple[name] = nil
	d, err := s.schema(s.definitions[name], path)
	if err != nil {
		return nil, err
	}
	s.simple[name] = d
	return d, nil
}

// inline is schema for a place where upstream may have copied a definition. Only schemas
// that need a name count as copies: two string schemas are equal by chance.
func (s *simplifier) inline(t *schemas.Type, path string, isArm bool) (*schemas.Type, error) {
	if t == nil {
		return nil, nil
	}
	if len(t.AnyOf)+len(t.AllOf)+len(t.Enum) > 0 || isArm && (len(t.Properties) > 0 || t.Items != nil) {
		if name, ok := s.names[form(t)]; ok {
			return &schemas.Type{Ref: "#/$defs/" + name, Description: t.Description}, nil
		}
	}
	return s.schema(t, path)
}

// schema returns a schema in its simple form.
func (s *simplifier) schema(t *schemas.Type, path string) (*schemas.Type, error) {
	out, err := *t, error(nil)
	if out.Items, err = s.inline(t.Items, path+"/items", false); err != nil {
		return nil, err
	}
	if out.AdditionalProperties, err = s.inline(t.AdditionalProperties, path+"/additionalProperties",
		false); err != nil {
		return nil, err
	}
	out.Properties = make(map[string]*schemas.Type)
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		if out.Properties[name], err = s.inline(t.Properties[name], path+"/properties/"+escape(name),
			false); err != nil {
			return nil, err
		}
	}
	out.AnyOf = nil
	for i, a := range t.AnyOf {
		arm, err := s.inline(a, fmt.Sprintf("%s/anyOf/%d", path, i), true)
		if err != nil {
			return nil, err
		}
		out.AnyOf = append(out.AnyOf, arm)
	}
	switch i := slices.Index(t.Type, "null"); {
	case i >= 0 && len(t.Type) == 2: // null comes last
		out.Type = []string{t.Type[1-i], "null"}
	case len(t.AllOf) > 0:
		return s.merge(&out, path)
	case len(t.AnyOf) > 0 && len(t.Properties)+len(t.Required) > 0:
		return nil, refuse(path, "no rule for a choice next to members")
	case len(t.AnyOf) > 0:
		simpleChoice(&out)
	}
	return &out, nil
}

// simpleChoice turns a choice of constants into an enum, and a choice of a scalar type and null into a
// list of types.
func simpleChoice(t *schemas.Type) {
	isConstant := func(a *schemas.Type) bool {
		_, ok := a.Const.(string)
		return ok && slices.Equal(a.Type, []string{"string"})
	}
	if !slices.ContainsFunc(t.AnyOf, func(a *schemas.Type) bool { return !isConstant(a) }) {
		for _, a := range t.AnyOf {
			t.Enum = append(t.Enum, a.Const)
		}
		t.Type, t.AnyOf = []string{"string"}, nil
		return
	}
	isNull := func(a *schemas.Type) bool { return slices.Equal(a.Type, []string{"null"}) }
	i := slices.IndexFunc(t.AnyOf, isNull)
	if i < 0 || len(t.AnyOf) != 2 {
		return
	}
	only := t.AnyOf[1-i]
	if len(only.Type) != 1 || only.Type[0] == "object" || only.Type[0] == "array" || len(only.Enum) > 0 ||
		only.Const != nil {
		return
	}
	merged := *only
	merged.Type = []string{only.Type[0], "null"}
	if t.Title != "" {
		merged.Title = t.Title
	}
	if t.Description != "" {
		merged.Description = t.Description
	}
	*t = merged
}

// merge returns one schema for all parts of an allOf.
func (s *simplifier) merge(t *schemas.Type, path string) (*schemas.Type, error) {
	var parts []*schemas.Type
	for i, part := range t.AllOf {
		if part.Ref == "" {
			var err error
			if part, err = s.inline(part, fmt.Sprintf("%s/allOf/%d", path, i), true); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	if own := bare(t); len(own.Properties)+len(own.Required)+len(own.Type)+len(own.AnyOf) > 0 || own.Ref != "" {
		return nil, refuse(path, "no rule for allOf next to members")
	}
	out, err := s.join(parts, path+"/allOf")
	if err != nil {
		return nil, err
	}
	out.Title, out.Description = t.Title, t.Description
	return out, nil
}

// join returns an object with the members of every part.
func (s *simplifier) join(parts []*schemas.Type, path string) (*schemas.Type, error) {
	out := &schemas.Type{Type: []string{"object"}, Properties: make(map[string]*schemas.Type)}
	for i, part := range parts {
		here := fmt.Sprintf("%s/%d", path, i)
		object, err := s.resolve(part, here)
		if err != nil {
			return nil, err
		}
		if len(object.AnyOf) > 0 {
			name, _ := refName(part)
			if _, ok := besideNames[name]; !ok || len(out.AnyOf) > 0 {
				return nil, refuse(here, "no rule for a part that is a choice")
			}
			out.AnyOf = []*schemas.Type{part}
			continue
		}
		if !slices.Equal(object.Type, []string{"object"}) {
			return nil, refuse(here, "no rule for a part that is neither an object nor a reference to a union")
		}
		if extra := object.AdditionalProperties; extra != nil && !isAny(extra) {
			return nil, refuse(here, "no rule for a part with constraints on additional members")
		}
		for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
			at := here + "/properties/" + escape(name)
			if out.Properties[name], err = s.refine(out.Properties[name], object.Properties[name], at); err != nil {
				return nil, err
			}
		}
		for _, name := range object.Required {
			if !slices.Contains(out.Required, name) {
				out.Required = append(out.Required, name)
			}
		}
	}
	return out, nil
}

// refine returns the stricter of two schemas for the same member. It fails if there is no rule for what both admit.
func (s *simplifier) refine(a, b *schemas.Type, path string) (*schemas.Type, error) {
	if a == nil || form(a) == form(b) {
		return b, nil
	}
	if loose, err := s.admits(a, b, path); loose || err != nil {
		return b, err
	}
	if loose, err := s.admits(b, a, path); loose || err != nil {
		return a, err
	}
	return nil, refuse(path, "no rule for what both %s and %s admit", form(a), form(b))
}

// admits reports whether a restricts nothing but the type, and all values of b have that type.
func (s *simplifier) admits(a, b *schemas.Type, path string) (bool, error) {
	full, err := s.resolve(b, path)
	if err != nil || isAny(a) {
		return isAny(a), err
	}
	plain := bare(a)
	if extra := plain.AdditionalProperties; extra != nil && isAny(extra) {
		plain.AdditionalProperties = nil
	}
	return len(full.Type) == 1 && form(plain) == form(&schemas.Type{Type: full.Type}), nil
}

// resolve follows references.
func (s *simplifier) resolve(t *schemas.Type, path string) (*schemas.Type, error) {
	for t.Ref != "" {
		name, err := refName(t)
		if err != nil {
			return nil, refuse(path, "%w", err)
		}
		if s.definitions[name] == nil {
			return nil, refuse(path, "%s is not defined", name)
		}
		if t, err = s.definition(name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// isAny reports whether t admits every value.
func isAny(t *schemas.Type) bool { return form(t) == "{}" }
