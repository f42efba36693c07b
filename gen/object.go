package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// object makes the type of an object with members.
func (b *builder) object(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindObject, closed: isClosed(t)}
	b.shapes[goName] = t
	if _, ok := rawMembers[place(origin)]; ok {
		out.kind = kindShape
		out.name = lower(goName)
	}
	if extra := t.AdditionalProperties; !out.closed && extra != nil && !isAny(extra) {
		return b.refuse(origin, "no rule for additional members of one type next to others")
	}
	if len(t.AnyOf) > 0 {
		union, err := refName(t.AnyOf[0])
		row, ok := besideNames[union]
		if err != nil || !ok {
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
		out.fields = append(out.fields, f)
	}
	if f := b.restoreMeta(origin, out.fields); f != nil {
		out.fields = append([]*field{f}, out.fields...)
	}
	return b.add(out)
}

func (b *builder) field(parent, origin, member string, t *schemas.Type) (*field, error) {
	here := origin + "/" + member
	p := t.Properties[member]
	name, err := goName(member[strings.LastIndex(member, "/")+1:]) // the rest is a prefix
	if err != nil {
		return nil, b.refuse(here, "%w", err)
	}
	f := &field{json: member, name: name, doc: p.Description, required: slices.Contains(t.Required, member),
		common: commonFields[member]}
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
		return nil, b.refuse(here, "no rule for a member that may be absent and may be null")
	}
	if f.json == resultType.member && f.required && !f.constant && b.definitions[resultType.typeName] != nil {
		f.typ, f.fallback = ref{kind: refNamed, name: resultType.typeName},
			strconv.Quote(cmp.Or(resultType.of[parent], resultType.usual))
	}
	if row, ok := defaults[here]; ok && f.required {
		f.fallback = row.value
	}
	return f, nil
}

// restoreMeta returns the _meta that the schema lost from the params at origin, or nil.
func (b *builder) restoreMeta(origin string, fields []*field) *field {
	definition, ok := strings.CutSuffix(origin, "/params")
	if !ok || slices.ContainsFunc(fields, func(f *field) bool { return f.json == "_meta" }) {
		return nil
	}
	for _, end := range slices.Sorted(maps.Keys(lostMeta)) {
		if row := lostMeta[end]; strings.HasSuffix(definition, end) {
			f := &field{json: "_meta", name: "Meta", typ: ref{kind: refMembers}, restored: true,
				common: commonFields["_meta"]}
			if b.definitions[row.definition] != nil {
				f.typ = ref{kind: refNamed, name: row.definition}
			} else if row.otherwise != "" {
				f.typ = ref{kind: refNamed, name: row.otherwise}
			}
			return f
		}
	}
	return nil
}
