package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

func (b *builder) object(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindObject}
	if !strings.Contains(origin, "/") {
		out.constraint = constraint(t)
	}
	b.shapes[goName] = t
	if _, ok := rawMembers[place(origin)]; ok && b.mcp {
		out.kind = kindShape
		out.name = lower(goName)
	}
	out.closed = isClosed(t)
	if extra := t.AdditionalProperties; !out.closed && extra != nil && !isFreeValue(extra) {
		r, err := b.use(goName+"Extra", origin+"/*", extra)
		if err != nil {
			return err
		}
		out.extra = &r
	}
	if len(t.AnyOf) > 0 {
		union, err := refName(t.AnyOf[0])
		if err != nil {
			return b.refuse(origin, "%w", err)
		}
		row, ok := besideNames[union]
		if !ok {
			return b.refuse(origin, "no rule for the union %s next to members", union)
		}
		out.beside = &field{name: row.name, doc: row.doc, typ: ref{kind: refNamed, name: union}, required: true}
	}
	for _, member := range t.Required {
		if t.Properties[member] == nil {
			return b.refuse(origin, "required member %q is not described", member)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(t.Properties)) {
		f, err := b.field(goName, origin, member, t)
		if err != nil {
			return err
		}
		f.name = free(f.name, func(s string) bool {
			return slices.Contains(ownMembers, s) || slices.ContainsFunc(out.fields, func(g *field) bool { return g.name == s })
		})
		out.nulls = out.nulls || f.nullable
		out.fields = append(out.fields, f)
	}
	if f := b.restoreMeta(origin, out.fields); f != nil {
		out.fields = append([]*field{f}, out.fields...)
	}
	return b.add(out)
}

// ownMembers are the names that a structure may have besides those of its members.
var ownMembers = []string{"Extra", "Nulls", "MarshalJSON", "MarshalJSONTo", "UnmarshalJSON", "UnmarshalJSONFrom"}

func (b *builder) field(parent, origin, member string, t *schemas.Type) (*field, error) {
	here := origin + "/" + member
	p := t.Properties[member]
	if strings.ContainsFunc(member, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"\\`", r) }) {
		return nil, b.refuse(here, "no rule for a member whose name has a space, a quote or a backslash")
	}
	name := nameOr(member[strings.LastIndex(member, "/")+1:], map[bool]string{true: "Empty", false: "Member"}[member == ""]) // the rest is a prefix
	f := &field{json: member, name: name, doc: p.Description, required: slices.Contains(t.Required, member)}
	if b.mcp {
		f.common = commonFields[member]
	}
	var err error
	if s, ok := p.Const.(string); ok && !f.required { // an enum of one value, which may be absent
		enum := *p
		enum.Const, enum.Enum = nil, []any{s}
		p = &enum
	}
	if f.typ, err = b.use(parent+name, here, p); err != nil {
		return nil, err
	}
	if f.constant = f.typ.constant != ""; f.constant && !f.required {
		return nil, b.refuse(here, "no rule for a constant number that may be absent")
	}
	if f.typ.kind == refNullable && !f.required {
		check := f.typ.constraint
		f.typ, f.nullable = *f.typ.elem, true
		f.typ.constraint = both(check, f.typ.constraint)
	}
	if !b.mcp {
		return f, nil
	}
	if f.json == resultType.member && f.required && !f.constant && b.definitions[resultType.typeName] != nil {
		f.typ, f.fallback = ref{kind: refNamed, name: resultType.typeName}, strconv.Quote(cmp.Or(resultType.of[parent], resultType.usual))
	}
	if row, ok := defaults[here]; ok && f.required {
		f.fallback = row.value
	}
	return f, nil
}
