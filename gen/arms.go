package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

func (b *builder) union(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindUnion, union: union{one: len(t.OneOf) > 0}}
	if !strings.Contains(origin, "/") {
		out.constraint = constraint(t)
	}
	if len(t.Type) > 0 && len(t.Properties) > 0 {
		return b.refuse(origin, "no rule for anyOf with other constraints")
	}
	tree, err := b.arms(out, goName, origin, t, nil)
	if err != nil {
		return err
	}
	if out.union.mixed {
		out.union.tree = tree
	}
	for _, name := range extraArms[place(origin)].arms {
		if b.extension[name] {
			out.union.arms = append(out.union.arms, &arm{name: name})
		}
	}
	return b.add(out)
}

// arms adds the arms of a choice to a union, and returns its branches. The arms of a union within it become
// arms of the outer one. within are the definitions that are being read.
func (b *builder) arms(out *goType, goName, origin string, t *schemas.Type, within []string) (tree []branch, err error) {
	key, list := "anyOf", t.AnyOf
	if len(t.OneOf) > 0 {
		key, list = "oneOf", t.OneOf
	}
	// inner adds a choice within this one.
	inner := func(goName, origin string, c *schemas.Type, within []string) error {
		out.union.mixed = out.union.mixed || len(c.OneOf) > 0 || key == "oneOf"
		if check := constraint(c); check != "" { // it applies to each arm
			plain := *c
			plain.AnyOf, plain.OneOf = constrainedAll(c.AnyOf, check), constrainedAll(c.OneOf, check)
			c = &plain
		}
		branches, err := b.arms(out, goName, origin, c, within)
		if len(branches) > 0 {
			tree = append(tree, branch{one: len(c.OneOf) > 0, of: branches})
		}
		return err
	}
	for i, a := range list {
		here := fmt.Sprintf("%s/%s/%d", origin, key, i)
		if check := constraint(a); check != "" && a.Ref != "" {
			_, d, err := b.target(here, a)
			if err != nil {
				return nil, err
			}
			a = constrained(d, check)
		}
		if a = byType(a); a.Ref == "" {
			if isChoice(a) && nullable(a) == nil {
				err = inner(b.armName(goName, i, a), here, a, within)
			} else {
				var made branch
				made, err = b.inlineArm(out, b.armName(goName, i, a), here, a)
				tree = append(tree, made)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		name, d, err := b.target(here, a)
		if err != nil {
			return nil, err
		}
		switch {
		case nullable(d) != nil:
			return nil, b.refuse(here, "no rule for an arm that may be null")
		case isChoice(d) && constraint(d) != "":
			err = inner(b.armName(goName, i, a), here, d, within)
		case isChoice(d):
			if slices.Contains(within, name) {
				continue // its arms are there already
			}
			if b.mcp {
				out.union.one = out.union.one && len(d.OneOf) > 0
			}
			err = inner(b.goNames[name], name, d, append(slices.Clone(within), name))
		case slices.Equal(d.Type, []string{"array"}):
			tree = append(tree, out.addArm(b.goNames[name], true, false))
		case b.mcp && (isFree(d) || len(d.Type) > 1), isAny(d) && b.mcp:
			return nil, b.refuse(here, "no rule for the arm %s, which is not an object", name)
		default:
			tree = append(tree, out.addArm(b.goNames[name], false, !isObject(d)))
		}
		if err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// constrained returns the schema with one more constraint.
func constrained(t *schemas.Type, check string) *schemas.Type {
	out := *t
	out.GoJSONSchemaExtension = &schemas.GoJSONSchemaExtension{Type: new(both(constraint(t), check))}
	return &out
}

func constrainedAll(list []*schemas.Type, check string) (out []*schemas.Type) {
	for _, t := range list {
		out = append(out, constrained(t, check))
	}
	return out
}

// isObject reports whether a schema becomes a structure.
func isObject(t *schemas.Type) bool {
	return slices.Equal(t.Type, []string{"object"}) && !isMap(t)
}

// addArm adds an arm, unless it is there, and returns its branch.
func (t *goType) addArm(name string, list, value bool) branch {
	switch {
	case slices.Contains(t.union.lists, name), slices.ContainsFunc(t.union.arms, func(a *arm) bool { return a.name == name }):
	case list:
		t.union.lists = append(t.union.lists, name)
	default:
		t.union.arms = append(t.union.arms, &arm{name: name, value: value})
	}
	return branch{name: name, value: list || value}
}

// inlineArm adds an arm that is not a definition.
func (b *builder) inlineArm(out *goType, name, origin string, t *schemas.Type) (branch, error) {
	if nullable(t) != nil {
		return branch{}, b.refuse(origin, "no rule for an arm that may be null")
	}
	isList := slices.Equal(t.Type, []string{"array"})
	if isList && b.mcp {
		name = out.name + "List"
	}
	name = b.claim(name, origin)
	if made := b.types[name]; made != nil && made.origin == origin || b.making[origin] {
		return out.addArm(name, isList, !isList && !isObject(t)), nil // the union is an arm of another one, or of one within itself
	}
	b.making[origin] = true
	defer delete(b.making, origin)
	if err := b.named(name, origin, t, &goType{name: name, origin: origin, doc: typeDoc(origin, t), constraint: constraint(t)}); err != nil {
		return branch{}, err
	}
	if made := b.types[name]; made != nil {
		made.constraint = cmp.Or(made.constraint, constraint(t))
	}
	return out.addArm(name, isList, !isList && !isObject(t)), nil
}

// armName returns the name of an inline arm: its title, what distinguishes it, or its type.
func (b *builder) armName(union string, i int, t *schemas.Type) string {
	what := nameOr(t.Title, "")
	if what != "" && (strings.HasPrefix(what, union) || strings.HasSuffix(what, union)) {
		return what
	}
	for _, member := range slices.Sorted(maps.Keys(t.Properties)) {
		p := t.Properties[member]
		if tag, ok := p.Const.(string); ok && what == "" {
			what = nameOr(tag, "")
		} else if len(p.Enum) == 1 && what == "" {
			what = nameOr(fmt.Sprint(p.Enum[0]), "")
		}
	}
	if what == "" && len(t.Required) == 1 {
		what = nameOr(t.Required[0], "")
	}
	if s, ok := t.Const.(string); ok && what == "" {
		what = nameOr(s, "")
	}
	if what == "" && len(t.Type) == 1 {
		what = map[string]string{"array": "List", "object": "Object"}[t.Type[0]]
		what = cmp.Or(what, nameOr(t.Type[0], ""))
	}
	return union + cmp.Or(what, fmt.Sprintf("Arm%d", i+1))
}
