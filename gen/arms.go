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
	if err := b.arms(out, goName, origin, t, nil); err != nil {
		return err
	}
	if out.union.mixed && constraint(t) != "" {
		out.union.mixed, out.union.one = false, false // the constraint decides
	}
	for _, name := range extraArms[place(origin)].arms {
		if b.extension[name] {
			out.union.arms = append(out.union.arms, &arm{name: name})
		}
	}
	return b.add(out)
}

// arms adds the arms of a choice to a union. The arms of a union within it become arms of the
// outer one. within are the definitions that are being read.
func (b *builder) arms(out *goType, goName, origin string, t *schemas.Type, within []string) error {
	key, list := "anyOf", t.AnyOf
	if len(t.OneOf) > 0 {
		key, list = "oneOf", t.OneOf
	}
	for i, a := range list {
		here := fmt.Sprintf("%s/%s/%d", origin, key, i)
		if check := constraint(a); check != "" && a.Ref != "" {
			_, d, err := b.target(here, a)
			if err != nil {
				return err
			}
			a = constrained(d, check)
		}
		if a = byType(a); a.Ref == "" {
			if isChoice(a) && nullable(a) == nil {
				out.union.mixed = out.union.mixed || len(a.OneOf) > 0 || key == "oneOf"
				inner := *a
				if check := constraint(a); check != "" { // it applies to each arm
					inner.AnyOf, inner.OneOf = constrainedAll(a.AnyOf, check), constrainedAll(a.OneOf, check)
				}
				if err := b.arms(out, b.armName(goName, i, a), here, &inner, within); err != nil {
					return err
				}
				continue
			}
			if err := b.inlineArm(out, b.armName(goName, i, a), here, a); err != nil {
				return err
			}
			continue
		}
		name, d, err := b.target(here, a)
		if err != nil {
			return err
		}
		switch {
		case nullable(d) != nil:
			return b.refuse(here, "no rule for an arm that may be null")
		case isChoice(d) && constraint(d) != "":
			out.union.mixed = out.union.mixed || len(d.OneOf) > 0 || key == "oneOf"
			inner := *d
			inner.AnyOf, inner.OneOf = constrainedAll(d.AnyOf, constraint(d)), constrainedAll(d.OneOf, constraint(d))
			if err := b.arms(out, b.armName(goName, i, a), here, &inner, within); err != nil {
				return err
			}
		case isChoice(d):
			if slices.Contains(within, name) {
				continue // its arms are there already
			}
			out.union.mixed = out.union.mixed || len(d.OneOf) > 0 || key == "oneOf"
			out.union.one = out.union.one && len(d.OneOf) > 0
			if err := b.arms(out, b.goNames[name], name, d, append(within, name)); err != nil {
				return err
			}
		case slices.Equal(d.Type, []string{"array"}):
			out.addArm(b.goNames[name], true, false)
		case b.mcp && (isFree(d) || len(d.Type) > 1), isAny(d) && b.mcp:
			return b.refuse(here, "no rule for the arm %s, which is not an object", name)
		default:
			out.addArm(b.goNames[name], false, !isObject(d))
		}
	}
	return nil
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

// addArm adds an arm, unless it is there.
func (t *goType) addArm(name string, list, value bool) {
	if slices.Contains(t.union.lists, name) || slices.ContainsFunc(t.union.arms, func(a *arm) bool { return a.name == name }) {
		return
	}
	if list {
		t.union.lists = append(t.union.lists, name)
		return
	}
	t.union.arms = append(t.union.arms, &arm{name: name, value: value})
}

// inlineArm adds an arm that is not a definition.
func (b *builder) inlineArm(out *goType, name, origin string, t *schemas.Type) error {
	if nullable(t) != nil {
		return b.refuse(origin, "no rule for an arm that may be null")
	}
	isList := slices.Equal(t.Type, []string{"array"})
	if isList && b.mcp {
		name = out.name + "List"
	}
	name = b.claim(name, origin)
	if made := b.types[name]; made != nil && made.origin == origin || b.making[origin] {
		out.addArm(name, isList, !isList && !isObject(t))
		return nil // the union is an arm of another one, or of one within itself
	}
	b.making[origin] = true
	defer delete(b.making, origin)
	if err := b.named(name, origin, t, &goType{name: name, origin: origin, doc: typeDoc(origin, t), constraint: constraint(t)}); err != nil {
		return err
	}
	if made := b.types[name]; made != nil {
		made.constraint = cmp.Or(made.constraint, constraint(t))
	}
	out.addArm(name, isList, !isList && !isObject(t))
	return nil
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
