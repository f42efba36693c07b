package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// builder makes a model from a parsed schema. A construct without a rule is an error that
// names the place.
type builder struct {
	*parsed
	types map[string]*goType
}

// buildModel makes the model of a schema.
func buildModel(schema *parsed) (*model, error) {
	b := &builder{parsed: schema, types: make(map[string]*goType)}
	b.extend()
	for _, name := range slices.Sorted(maps.Keys(b.definitions)) {
		if err := b.definition(name, b.definitions[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		if u := b.types[name]; u.kind == kindUnion {
			if err := b.distinguish(u); err != nil {
				return nil, b.refuse(u.origin, "%w", err)
			}
		}
	}
	m := &model{extension: b.extension}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		t := b.types[name]
		for _, f := range t.fields {
			if f.typ.kind == refNamed && b.types[f.typ.name] == nil {
				return nil, b.refuse(t.origin+"/"+f.json, "no rule makes its type %s", f.typ.name)
			}
		}
		m.types = append(m.types, t)
	}
	var err error
	m.methods, err = b.methods()
	return m, err
}

// add records a type. Two places may share a type of the same form.
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
	if row, ok := copies[name]; ok && b.definitions[row.of] != nil && len(t.AnyOf) == 0 {
		out.kind, out.target = kindAlias, row.of
		return b.add(out)
	}
	switch {
	case name == jsonValue.name && slices.Contains(jsonValue.forms, formOf(t)):
		out.kind = kindJSON
	case t.Ref != "":
		target, err := refName(t)
		if err != nil {
			return b.refuse(name, "%w", err)
		}
		out.kind, out.target = kindAlias, target
	case len(t.AnyOf) > 0 && len(t.Properties) == 0:
		return b.union(goName, name, t)
	case len(t.Enum) > 0:
		return b.enum(goName, name, t)
	case len(t.Type) > 1:
		if err := handWritten(goName, t); err != nil {
			return b.refuse(name, "%w", err)
		}
		out.kind = kindHand
	case slices.Equal(t.Type, []string{"string"}) && t.Const == nil:
		out.kind = kindString
	case slices.Equal(t.Type, []string{"array"}):
		return b.list(goName, name, t)
	case isFree(t):
		out.kind = kindMembers
	case isMap(t):
		elem, err := b.use(goName+"Value", name+"/*", t.AdditionalProperties)
		if err != nil {
			return err
		}
		out.kind, out.elem = kindMap, elem
	case slices.Equal(t.Type, []string{"object"}):
		return b.object(goName, name, t)
	default:
		return b.refuse(name, "no rule for a definition of type %q", t.Type)
	}
	return b.add(out)
}

// refuse returns an error with the JSON pointer to a place of the schema.
func (b *builder) refuse(origin, format string, args ...any) error {
	return fmt.Errorf("%s: %w", b.pointer(origin), fmt.Errorf(format, args...))
}

// pointer returns the JSON pointer to the schema at origin.
func (b *builder) pointer(origin string) string {
	name, rest, _ := strings.Cut(origin, "/")
	pointer, t := b.container+"/"+name, b.definitions[name]
	for rest != "" {
		member := ""
		for m := range properties(t) { // a member's name may contain slashes
			if (rest == m || strings.HasPrefix(rest, m+"/")) && len(m) > len(member) {
				member = m
			}
		}
		step := ""
		if member == "" {
			step, rest, _ = strings.Cut(rest, "/")
		} else {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, member), "/")
		}
		switch {
		case member != "":
			pointer += "/properties/" + escape(member)
			t = t.Properties[member]
		case step == "*" && t != nil && t.Items != nil:
			pointer, t = pointer+"/items", t.Items
		case step == "*" && t != nil:
			pointer, t = pointer+"/additionalProperties", t.AdditionalProperties
		default: // within anyOf
			pointer, t = pointer+"/"+step, nil
		}
	}
	return pointer
}

func properties(t *schemas.Type) map[string]*schemas.Type {
	if t == nil {
		return nil
	}
	return t.Properties
}

// place returns the name of a place in the tables. They name the params of a message as
// newer versions do, where these are a separate definition.
func place(origin string) string {
	for _, kind := range []string{"Request", "Notification"} {
		definition, rest, ok := strings.Cut(origin, "/params")
		if ok && strings.HasSuffix(definition, kind) && (rest == "" || rest[0] == '/') {
			return definition + "Params" + rest
		}
	}
	return origin
}

// extend adds members of the extension's definitions to the definitions in the table
// extended.
func (b *builder) extend() {
	for name, row := range extended {
		from, to := b.definitions[row.by], b.definitions[name]
		if from == nil || to == nil || !b.extension[row.by] {
			continue
		}
		for member, t := range from.Properties {
			if to.Properties[member] == nil {
				to.Properties[member] = t
			}
		}
	}
}

// handWritten checks that the hand-written type goName reads exactly the types in t.
func handWritten(goName string, t *schemas.Type) error {
	types := strings.Join(slices.Sorted(slices.Values(t.Type)), " ")
	if row, ok := handTypes[goName]; !ok || row.types != types {
		return fmt.Errorf("no rule for the list of types %q in %s", []string(t.Type), goName)
	}
	return nil
}

// isFormValue reports whether t is the type of a form field's value since version
// 2025-11-25: a list of strings, or one of the scalars of earlier versions.
func isFormValue(t *schemas.Type) bool {
	return len(t.AnyOf) == 2 && formOf(t.AnyOf[0]) == `{"items":{"type":["string"]},"type":["array"]}` &&
		handWritten("ElicitValue", t.AnyOf[1]) == nil
}

// formOf returns the canonical form of a schema.
func formOf(t *schemas.Type) string {
	var tree any
	if err := json.Unmarshal([]byte(compact(t)), &tree); err != nil {
		return err.Error()
	}
	return canonical(tree)
}

// isClosed reports whether an object has no members but those of its schema.
func isClosed(t *schemas.Type) bool {
	return t.AdditionalProperties != nil && t.AdditionalProperties.Not != nil
}

// isMap reports whether t is an object with arbitrary names and values of one type.
func isMap(t *schemas.Type) bool {
	return slices.Equal(t.Type, []string{"object"}) && len(t.Properties) == 0 && len(t.Required) == 0 && len(t.AnyOf) == 0 && !isClosed(t)
}

// isFree reports whether t is an object with arbitrary members.
func isFree(t *schemas.Type) bool {
	return isMap(t) && (t.AdditionalProperties == nil || isAny(t.AdditionalProperties))
}

// list makes the type of a definition that is an array.
func (b *builder) list(goName, origin string, t *schemas.Type) error {
	r, err := b.useType(goName, origin, t)
	if err != nil {
		return err
	}
	return b.add(&goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindList, elem: *r.elem, max: r.most})
}

// typeDoc returns the comment of a type: the description of a definition, or the title of
// an inline schema, because its description is that of the member.
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
			return b.refuse(origin, "no rule for the enum value %v", v)
		}
		out.values = append(out.values, s)
	}
	return b.add(out)
}

func (b *builder) union(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindUnion}
	if len(t.Type) > 0 || len(t.Properties) > 0 {
		return b.refuse(origin, "no rule for anyOf with other constraints")
	}
	for i, a := range t.AnyOf {
		if a.Ref == "" && slices.Equal(a.Type, []string{"array"}) {
			list := goName + "List"
			if err := b.list(list, fmt.Sprintf("%s/anyOf/%d", origin, i), a); err != nil {
				return err
			}
			out.lists = append(out.lists, list)
			continue
		}
		if a.Ref == "" {
			return b.refuse(fmt.Sprintf("%s/anyOf/%d", origin, i), "no rule for an arm that is not a reference")
		}
		name, err := refName(a)
		if err != nil {
			return b.refuse(origin, "%w", err)
		}
		switch d := b.definitions[name]; {
		case d != nil && slices.Equal(d.Type, []string{"array"}):
			out.lists = append(out.lists, name)
		case d != nil && slices.Equal(d.Type, []string{"object"}) && len(d.Properties) > 0:
			out.arms = append(out.arms, &arm{name: name})
		default:
			return b.refuse(fmt.Sprintf("%s/anyOf/%d", origin, i), "no rule for the arm %s, which is not an object", name)
		}
	}
	for _, name := range extraArms[place(origin)].arms {
		if b.extension[name] {
			out.arms = append(out.arms, &arm{name: name})
		}
	}
	return b.add(out)
}

func (b *builder) object(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindObject}
	if _, ok := rawMembers[place(origin)]; ok {
		out.kind = kindShape
		out.name = lower(goName)
	}
	switch out.closed = isClosed(t); {
	case out.closed && len(t.Properties) == 0:
	case t.AdditionalProperties != nil && !isAny(t.AdditionalProperties):
		return b.refuse(origin, "no rule for additionalProperties with constraints next to properties")
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
		if slices.ContainsFunc(out.fields, func(g *field) bool { return g.name == f.name }) {
			return b.refuse(origin, "two members would both be called %s", f.name)
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
	if name == "Extra" {
		return nil, b.refuse(here, "the name Extra is taken by the unknown members")
	}
	f := &field{json: member, name: name, doc: p.Description, required: slices.Contains(t.Required, member)}
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
		return nil, b.refuse(here, "no rule for null in a member that may be absent")
	}
	if f.json == resultType.member && f.required && !f.constant && b.definitions[resultType.typeName] != nil {
		f.typ, f.fallback = ref{kind: refNamed, name: resultType.typeName}, cmp.Or(resultType.of[parent], resultType.usual)
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
			f := &field{json: "_meta", name: "Meta", typ: ref{kind: refMembers}, restored: true}
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

// use resolves the schema of a member, element or map value. If that needs a new type, its
// name is that in typeNames, or else name.
func (b *builder) use(name, origin string, t *schemas.Type) (ref, error) {
	if row, ok := typeNames[place(origin)]; ok {
		name = row.name
	} else if row, ok := typeNames["*"+origin[strings.LastIndex(origin, "/"):]]; ok {
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
			return ref{}, b.refuse(origin, "%w", err)
		}
		d := b.definitions[target]
		switch {
		case d == nil:
			return ref{}, b.refuse(origin, "%s is not defined", target)
		case target == jsonValue.name && slices.Contains(jsonValue.forms, formOf(d)):
			return ref{kind: refJSON, name: target}, nil
		case isFree(d):
			return ref{kind: refMembers, name: target}, nil
		}
		return ref{kind: refNamed, name: target}, nil
	case isFormValue(t):
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case len(t.AnyOf) > 0:
		return ref{kind: refNamed, name: name}, b.union(name, origin, t)
	case len(t.Enum) > 0:
		return ref{kind: refNamed, name: name}, b.enum(name, origin, t)
	case len(t.Type) == 2 && t.Type[1] == "null":
		plain := *t
		plain.Type = t.Type[:1]
		elem, err := b.useType(name, origin, &plain)
		return ref{kind: refNullable, elem: &elem}, err
	case len(t.Type) > 1:
		if err := handWritten(name, t); err != nil {
			return ref{}, b.refuse(origin, "%w", err)
		}
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case len(t.Type) == 0:
		return ref{}, b.refuse(origin, "no rule for a schema without a type")
	}
	return b.useType(name, origin, t)
}

func (b *builder) useType(name, origin string, t *schemas.Type) (ref, error) {
	if t.MaxItems != 0 && t.Type[0] != "array" {
		return ref{}, b.refuse(origin, "no rule for maxItems of type %q", t.Type[0])
	}
	for _, bound := range []*float64{t.Minimum, t.Maximum} {
		if bound != nil && (t.Type[0] != "number" && t.Type[0] != "integer" || t.Type[0] == "integer" && *bound != math.Trunc(*bound)) {
			return ref{}, b.refuse(origin, "no rule for the bound %v of type %q", *bound, t.Type[0])
		}
	}
	if t.Const != nil && t.Type[0] != "string" && t.Type[0] != "integer" {
		return ref{}, b.refuse(origin, "no rule for a constant of type %q", t.Type[0])
	}
	switch t.Type[0] {
	case "string":
		if t.Const != nil {
			s, ok := t.Const.(string)
			if !ok || s == "" {
				return ref{}, b.refuse(origin, "no rule for the constant %v", t.Const)
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
		if t.Const != nil {
			return b.constantInt(origin, t)
		}
		return ref{kind: refInt, min: t.Minimum, max: t.Maximum}, nil
	case "number":
		if (t.Minimum == nil) != (t.Maximum == nil) {
			return ref{}, b.refuse(origin, "no rule for a number with one bound")
		}
		return ref{kind: refNumber, min: t.Minimum, max: t.Maximum}, nil
	case "array":
		if t.Items == nil {
			return ref{}, b.refuse(origin, "no rule for an array without items")
		}
		elem, err := b.use(name+"Item", origin+"/*", t.Items)
		return ref{kind: refArray, elem: &elem, most: t.MaxItems}, err
	case "object":
		return b.useObject(name, origin, t)
	}
	return ref{}, b.refuse(origin, "no rule for type %q", t.Type)
}

func (b *builder) constantInt(origin string, t *schemas.Type) (ref, error) {
	n, ok := t.Const.(float64)
	if !ok || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
		return ref{}, b.refuse(origin, "no rule for the constant %v", t.Const)
	}
	return ref{kind: refInt, constant: strconv.FormatInt(int64(n), 10)}, nil
}

func (b *builder) useObject(name, origin string, t *schemas.Type) (ref, error) {
	_, raw := rawMembers[place(origin)]
	open := t.AdditionalProperties == nil || isAny(t.AdditionalProperties)
	switch {
	case len(t.Properties) == 0 && !isMap(t):
		return ref{}, b.refuse(origin, "no rule for an object with constraints but without properties")
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
