package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// builder makes a model from a parsed schema. Whatever it has no rule for is an
// error that names the place.
type builder struct {
	definitions schemas.Definitions
	types       map[string]*goType
}

// buildModel makes the model of a schema.
func buildModel(schema *schemas.Schema) (*model, error) {
	b := &builder{definitions: schema.Definitions, types: make(map[string]*goType)}
	for _, name := range slices.Sorted(maps.Keys(b.definitions)) {
		if err := b.definition(name, b.definitions[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		if u := b.types[name]; u.kind == kindUnion {
			if err := b.tellApart(u); err != nil {
				return nil, fmt.Errorf("%s: %w", u.origin, err)
			}
		}
	}
	m := &model{}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		m.types = append(m.types, b.types[name])
	}
	var err error
	m.methods, err = b.methods()
	return m, err
}

// add records a type. Two places may share one, if they agree on its form.
func (b *builder) add(t *goType) error {
	old, ok := b.types[t.name]
	if !ok {
		b.types[t.name] = t
		return nil
	}
	if !sameForm(old, t) {
		return fmt.Errorf("%s and %s would both be called %s", old.origin, t.origin, t.name)
	}
	if old.doc == "" {
		old.doc = t.doc
	}
	for i, f := range old.fields {
		if f.doc == "" {
			f.doc = t.fields[i].doc
		}
	}
	return nil
}

func (b *builder) definition(name string, t *schemas.Type) error {
	goName, err := goName(name)
	if err != nil {
		return err
	}
	out := &goType{name: goName, origin: name, doc: t.Description}
	switch {
	case t.Ref != "":
		target, err := refName(t)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.kind, out.target = kindAlias, target
	case len(t.AnyOf) > 0:
		return b.union(goName, name, t)
	case len(t.Enum) > 0:
		return b.enum(goName, name, t)
	case len(t.Type) > 1:
		if err := handWritten(goName, t.Type); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.kind = kindHand
	case slices.Equal(t.Type, []string{"string"}):
		out.kind = kindString
	case slices.Equal(t.Type, []string{"object"}):
		return b.object(goName, name, t)
	default:
		return fmt.Errorf("%s: no rule for a definition of type %q", name, t.Type)
	}
	return b.add(out)
}

// handWritten checks that a list of types is what the hand-written type reads.
func handWritten(goName string, types []string) error {
	row, ok := handTypes[goName]
	if want := strings.Join(slices.Sorted(slices.Values(types)), " "); !ok || !sameWords(row.types, want) {
		return fmt.Errorf("no rule for the list of types %q in %s", types, goName)
	}
	return nil
}

func sameWords(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(a)), slices.Sorted(strings.FieldsSeq(b)))
}

// typeDoc returns what our schema says of a type: the description of a
// definition, the title of an inline schema, whose description is the member's.
func typeDoc(origin string, t *schemas.Type) string {
	if strings.Contains(origin, "/") {
		return t.Title
	}
	return t.Description
}

func (b *builder) enum(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindEnum}
	for _, v := range t.Enum {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s: no rule for the enum value %v", origin, v)
		}
		out.values = append(out.values, s)
	}
	return b.add(out)
}

func (b *builder) union(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindUnion}
	if len(t.Type) > 0 || len(t.Properties) > 0 {
		return fmt.Errorf("%s: no rule for anyOf beside other constraints", origin)
	}
	for i, a := range t.AnyOf {
		if a.Ref == "" {
			return fmt.Errorf("%s/anyOf/%d: no rule for an arm that is not a reference", origin, i)
		}
		name, err := refName(a)
		if err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
		if d := b.definitions[name]; d == nil || !slices.Equal(d.Type, []string{"object"}) {
			return fmt.Errorf("%s/anyOf/%d: no rule for the arm %s, which is not an object", origin, i, name)
		}
		out.arms = append(out.arms, &arm{name: name})
	}
	return b.add(out)
}

func (b *builder) object(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindObject}
	if _, ok := rawMembers[origin]; ok {
		out.kind = kindShape
		out.name = lower(goName)
	}
	if t.AdditionalProperties != nil && !isAny(t.AdditionalProperties) {
		return fmt.Errorf("%s: no rule for additionalProperties with constraints beside properties", origin)
	}
	for _, member := range t.Required {
		if t.Properties[member] == nil {
			return fmt.Errorf("%s: required member %q is not described", origin, member)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(t.Properties)) {
		f, err := b.field(goName, origin, member, t)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(out.fields, func(g *field) bool { return g.name == f.name }) {
			return fmt.Errorf("%s: two members would both be called %s", origin, f.name)
		}
		out.fields = append(out.fields, f)
	}
	if f := restoreMeta(origin, out.fields); f != nil {
		out.fields = append([]*field{f}, out.fields...)
	}
	return b.add(out)
}

func (b *builder) field(parent, origin, member string, t *schemas.Type) (*field, error) {
	here := origin + "/" + member
	p := t.Properties[member]
	name, err := goName(member)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", here, err)
	}
	if name == "Extra" {
		return nil, fmt.Errorf("%s: the name Extra is taken by the unknown members", here)
	}
	typ, err := b.use(parent+name, here, p)
	if err != nil {
		return nil, err
	}
	f := &field{json: member, name: name, doc: p.Description, typ: typ, required: slices.Contains(t.Required, member)}
	if f.constant = typ.constant != ""; f.constant && !f.required {
		return nil, fmt.Errorf("%s: no rule for a constant that may be absent", here)
	}
	return f, nil
}

// restoreMeta returns the _meta that the params at origin should have had.
func restoreMeta(origin string, fields []*field) *field {
	definition, ok := strings.CutSuffix(origin, "/params")
	if !ok || slices.ContainsFunc(fields, func(f *field) bool { return f.json == "_meta" }) {
		return nil
	}
	for _, end := range slices.Sorted(maps.Keys(lostMeta)) {
		if row := lostMeta[end]; strings.HasSuffix(definition, end) {
			f := &field{json: "_meta", name: "Meta", typ: ref{kind: refMembers}, restored: true}
			if row.typeName != "" {
				f.typ = ref{kind: refNamed, name: row.typeName}
			}
			return f
		}
	}
	return nil
}

// use resolves the schema at a member, element or map value. A type that it has
// to make there is called name, or what typeNames says.
func (b *builder) use(name, origin string, t *schemas.Type) (ref, error) {
	if row, ok := typeNames[origin]; ok {
		name = row.name
	} else if strings.HasSuffix(origin, "Request/params") || strings.HasSuffix(origin, "Notification/params") {
		name = strings.TrimSuffix(origin, "/params") + "Params"
	}
	switch {
	case isAny(t):
		return ref{kind: refAny}, nil
	case t.Ref != "":
		target, err := refName(t)
		if err != nil {
			return ref{}, fmt.Errorf("%s: %w", origin, err)
		}
		if b.definitions[target] == nil {
			return ref{}, fmt.Errorf("%s: %s is not defined", origin, target)
		}
		return ref{kind: refNamed, name: target}, nil
	case len(t.AnyOf) > 0:
		return ref{kind: refNamed, name: name}, b.union(name, origin, t)
	case len(t.Enum) > 0:
		return ref{kind: refNamed, name: name}, b.enum(name, origin, t)
	case len(t.Type) > 1:
		if err := handWritten(name, t.Type); err != nil {
			return ref{}, fmt.Errorf("%s: %w", origin, err)
		}
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case len(t.Type) == 0:
		return ref{}, fmt.Errorf("%s: no rule for a schema without a type", origin)
	}
	return b.useType(name, origin, t)
}

func (b *builder) useType(name, origin string, t *schemas.Type) (ref, error) {
	if t.Const != nil && t.Type[0] != "string" {
		return ref{}, fmt.Errorf("%s: no rule for a constant of type %q", origin, t.Type[0])
	}
	switch t.Type[0] {
	case "string":
		if t.Const != nil {
			s, ok := t.Const.(string)
			if !ok || s == "" {
				return ref{}, fmt.Errorf("%s: no rule for the constant %v", origin, t.Const)
			}
			return ref{kind: refString, constant: s}, nil
		}
		if t.Format == "byte" {
			return ref{kind: refNamed, name: "Base64"}, b.add(&goType{name: "Base64", kind: kindHand})
		}
		return ref{kind: refString}, nil
	case "boolean":
		return ref{kind: refBool}, nil
	case "integer":
		if t.Minimum != nil || t.Maximum != nil {
			return ref{}, fmt.Errorf("%s: no rule for an integer with bounds", origin)
		}
		return ref{kind: refInt}, nil
	case "number":
		if (t.Minimum == nil) != (t.Maximum == nil) {
			return ref{}, fmt.Errorf("%s: no rule for a number with one bound", origin)
		}
		return ref{kind: refNumber, min: t.Minimum, max: t.Maximum}, nil
	case "array":
		if t.Items == nil {
			return ref{}, fmt.Errorf("%s: no rule for an array without items", origin)
		}
		elem, err := b.use(name+"Item", origin+"/*", t.Items)
		return ref{kind: refArray, elem: &elem}, err
	case "object":
		return b.useObject(name, origin, t)
	}
	return ref{}, fmt.Errorf("%s: no rule for type %q", origin, t.Type)
}

func (b *builder) useObject(name, origin string, t *schemas.Type) (ref, error) {
	_, raw := rawMembers[origin]
	open := t.AdditionalProperties == nil || isAny(t.AdditionalProperties)
	switch {
	case len(t.Properties) > 0 && raw:
		return ref{kind: refShape, name: lower(name)}, b.object(name, origin, t)
	case len(t.Properties) > 0:
		return ref{kind: refNamed, name: name}, b.object(name, origin, t)
	case open && (raw || strings.HasSuffix(origin, "/*")):
		return ref{kind: refObject}, nil
	case open:
		return ref{kind: refMembers}, nil
	}
	elem, err := b.use(name+"Value", origin+"/*", t.AdditionalProperties)
	return ref{kind: refMap, elem: &elem}, err
}
