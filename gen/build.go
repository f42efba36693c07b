package main

import (
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
	goNames map[string]string        // of the definitions
	shapes  map[string]*schemas.Type // the schemas of objects by Go name
	types   map[string]*goType
}

// buildModel makes the model of a schema.
func buildModel(schema *parsed) (*model, error) {
	b := &builder{schema, make(map[string]string), make(map[string]*schemas.Type), make(map[string]*goType)}
	b.extend()
	for name := range b.definitions {
		b.goNames[name] = definitionNames[name].name
		if b.goNames[name] == "" {
			var err error
			if b.goNames[name], err = goName(name); err != nil {
				return nil, b.refuse(name, "%w", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.definitions)) {
		if err := b.definition(name, b.definitions[name]); err != nil {
			return nil, err
		}
	}
	m := &model{extension: b.extension}
	var err error
	if m.methods, err = b.methods(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		for _, f := range b.types[name].fields {
			if f.typ.kind == refNamed && b.types[f.typ.name] == nil {
				return nil, b.refuse(b.types[name].origin+"/"+f.json, "no rule makes its type %s", f.typ.name)
			}
		}
	}
	b.dropMessages(m.methods)
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		t := b.types[name]
		if t.kind == kindUnion {
			if err := b.distinguish(t); err != nil {
				return nil, b.refuse(t.origin, "%w", err)
			}
		}
		for _, v := range t.enum.values {
			name, err := goName(v)
			if err != nil {
				return nil, b.refuse(t.origin, "%w", err)
			}
			t.enum.names = append(t.enum.names, t.name+name)
		}
		m.types = append(m.types, t)
	}
	return m, nil
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

// add records a type. Two places may share a type of the same form.
func (b *builder) add(t *goType) error {
	old, ok := b.types[t.name]
	if !ok {
		b.types[t.name] = t
		return nil
	}
	if !sameForm(old, t) {
		return b.refuse(t.origin, "its type would be called %s, as that of %s: it needs a row in typeNames", t.name,
			b.pointer(old.origin))
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

// definition makes the type of a definition.
func (b *builder) definition(name string, t *schemas.Type) error {
	out := &goType{name: b.goNames[name], origin: name, doc: t.Description}
	switch row, ok := copies[name]; {
	case ok && b.definitions[row.of] != nil && len(t.AnyOf) == 0:
		out.kind, out.target = kindAlias, row.of
		return b.add(out)
	case t.Ref != "":
		target, _, err := b.target(name, t)
		if err != nil {
			return err
		}
		out.kind, out.target = kindAlias, b.goNames[target]
		return b.add(out)
	}
	return b.named(name, t, out)
}

// target follows a reference to a definition that is not one.
func (b *builder) target(origin string, t *schemas.Type) (name string, d *schemas.Type, err error) {
	for range b.definitions {
		if name, err = refName(t); err != nil {
			return "", nil, b.refuse(origin, "%w", err)
		}
		if d = b.definitions[name]; d == nil {
			return "", nil, b.refuse(origin, "%s is not defined", name)
		}
		if d.Ref == "" {
			return name, d, nil
		}
		t = d
	}
	return "", nil, b.refuse(origin, "the definition contains itself")
}

// named makes out, the type of the schema at origin, or another one with its name.
func (b *builder) named(origin string, t *schemas.Type, out *goType) error {
	is := func(kind string) bool { return slices.Equal(t.Type, []string{kind}) }
	switch {
	case origin == jsonValue.name && slices.Contains(jsonValue.forms, form(t)):
		out.kind = kindJSON
	case isChoice(t):
		return b.union(out.name, origin, t)
	case len(t.Enum) > 0:
		return b.enum(out.name, origin, t)
	case handWritten(out.name, t):
		out.kind = kindHand
	case is("string") && t.Const == nil:
		out.kind = kindString
	case is("array"):
		r, err := b.useType(out.name, origin, t)
		if err != nil {
			return err
		}
		out.kind, out.doc, out.elem, out.max = kindList, typeDoc(origin, t), *r.elem, r.most
	case isFree(t):
		out.kind = kindMembers
	case isMap(t):
		elem, err := b.use(out.name+"Value", origin+"/*", t.AdditionalProperties)
		if err != nil {
			return err
		}
		out.kind, out.elem = kindMap, elem
	case is("object"):
		return b.object(out.name, origin, t)
	default:
		return b.refuse(origin, "no rule for a definition that is %s", form(t))
	}
	return b.add(out)
}

// enum makes the type of a list of strings.
func (b *builder) enum(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindEnum}
	for _, v := range t.Enum {
		s, ok := v.(string)
		if !ok {
			return b.refuse(origin, "no rule for the enum value %v", v)
		}
		out.enum.values = append(out.enum.values, s)
	}
	return b.add(out)
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
		return b.useDefinition(origin, t)
	case len(t.Type) == 2 && t.Type[1] == "null":
		plain := *t
		plain.Type = t.Type[:1]
		elem, err := b.use(name, origin, &plain)
		return ref{kind: refNullable, elem: &elem}, err
	case isFormValue(t), handWritten(name, t):
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case isChoice(t):
		return ref{kind: refNamed, name: name}, b.union(name, origin, t)
	case len(t.Enum) > 0:
		return ref{kind: refNamed, name: name}, b.enum(name, origin, t)
	case len(t.Type) != 1:
		return ref{}, b.refuse(origin, "no rule for the types %q", t.Type)
	}
	return b.useType(name, origin, t)
}

// useDefinition resolves a reference.
func (b *builder) useDefinition(origin string, t *schemas.Type) (ref, error) {
	target, d, err := b.target(origin, t)
	if err != nil {
		return ref{}, err
	}
	direct, err := refName(t)
	switch {
	case target == jsonValue.name && slices.Contains(jsonValue.forms, form(d)):
		return ref{kind: refJSON, name: target}, err
	case isFree(d):
		return ref{kind: refMembers, name: b.goNames[direct]}, err
	}
	return ref{kind: refNamed, name: b.goNames[direct]}, err
}

// useType resolves a schema with one type.
func (b *builder) useType(name, origin string, t *schemas.Type) (ref, error) {
	switch c, isText := t.Const.(string); t.Type[0] {
	case "string":
		switch {
		case t.Const != nil && (!isText || c == ""): // "" is the sign of no constant
			return ref{}, b.refuse(origin, "no rule for the constant %q", t.Const)
		case t.Format == "byte":
			return ref{kind: refNamed, name: "Base64"}, b.add(&goType{name: "Base64", kind: kindHand})
		}
		return ref{kind: refString, constant: c}, nil
	case "boolean":
		return ref{kind: refBool}, b.noConstant(origin, t)
	case "integer":
		if n, ok := t.Const.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return ref{kind: refInt, constant: strconv.FormatInt(int64(n), 10)}, nil
		}
		return ref{kind: refInt, min: t.Minimum, max: t.Maximum}, b.noConstant(origin, t)
	case "number":
		return ref{kind: refNumber, min: t.Minimum, max: t.Maximum}, b.noConstant(origin, t)
	case "array":
		if t.Items == nil {
			return ref{}, b.refuse(origin, "no rule for a list of anything")
		}
		elem, err := b.use(name+"Item", origin+"/*", t.Items)
		return ref{kind: refArray, elem: &elem, most: t.MaxItems}, err
	case "object":
		return b.useObject(name, origin, t)
	}
	return ref{}, b.refuse(origin, "no rule for type %q", t.Type)
}

func (b *builder) noConstant(origin string, t *schemas.Type) error {
	if t.Const != nil {
		return b.refuse(origin, "no rule for the constant %v", t.Const)
	}
	return nil
}

func (b *builder) useObject(name, origin string, t *schemas.Type) (ref, error) {
	_, raw := rawMembers[place(origin)]
	switch {
	case len(t.Properties) > 0 && raw:
		return ref{kind: refShape, name: lower(name)}, b.object(name, origin, t)
	case !isMap(t):
		return ref{kind: refNamed, name: name}, b.object(name, origin, t)
	case isFree(t) && (raw || strings.HasSuffix(origin, "/*")):
		return ref{kind: refObject}, nil
	case isFree(t):
		return ref{kind: refMembers}, nil
	}
	elem, err := b.use(name+"Value", origin+"/*", t.AdditionalProperties)
	return ref{kind: refMap, elem: &elem}, err
}

// refuse returns an error with the JSON pointer to a place of the schema.
func (b *builder) refuse(origin, format string, args ...any) error {
	return refuse(b.pointer(origin), format, args...)
}

// pointer returns the JSON pointer to the schema at origin.
func (b *builder) pointer(origin string) string {
	name, rest, _ := strings.Cut(origin, "/")
	pointer, t := b.container+"/"+escape(name), b.definitions[name]
	for rest != "" {
		step, after := rest, ""
		if t == nil || t.Properties[rest] == nil { // a member's name may contain slashes
			step, after, _ = strings.Cut(rest, "/")
		}
		switch {
		case t == nil: // within anyOf
			pointer += "/" + step
		case t.Properties[step] != nil:
			pointer, t = pointer+"/properties/"+escape(step), t.Properties[step]
		case step == "*" && t.Items != nil:
			pointer, t = pointer+"/items", t.Items
		case step == "*":
			pointer, t = pointer+"/additionalProperties", t.AdditionalProperties
		default:
			pointer, t = pointer+"/"+step, nil
		}
		rest = after
	}
	return pointer
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

// typeDoc returns the comment of a type: the description of a definition, or the title of
// an inline schema, because its description is that of the member.
func typeDoc(origin string, t *schemas.Type) string {
	if strings.Contains(origin, "/") {
		return t.Title
	}
	return t.Description
}

// handWritten reports whether the hand-written type goName reads exactly the types in t.
func handWritten(goName string, t *schemas.Type) bool {
	row, ok := handTypes[goName]
	return ok && row.types == strings.Join(slices.Sorted(slices.Values(t.Type)), " ")
}

// isFormValue reports whether t is the type of a form field's value since version
// 2025-11-25: a list of strings, or one of the scalars of earlier versions.
func isFormValue(t *schemas.Type) bool {
	return len(t.AnyOf) == 2 && form(t.AnyOf[0]) == `{"items":{"type":["string"]},"type":["array"]}` &&
		handWritten("ElicitValue", t.AnyOf[1])
}

// isChoice reports whether a schema is a choice, and not an object with a choice among its members.
func isChoice(t *schemas.Type) bool { return len(t.AnyOf) > 0 && len(t.Properties) == 0 }

// isClosed reports whether an object has no members but those of its schema.
func isClosed(t *schemas.Type) bool {
	return t.AdditionalProperties != nil && t.AdditionalProperties.Not != nil
}

// isMap reports whether t is an object with arbitrary names and values of one type.
func isMap(t *schemas.Type) bool {
	return slices.Equal(t.Type, []string{"object"}) && len(t.Properties)+len(t.Required)+len(t.AnyOf) == 0 &&
		!isClosed(t)
}

// isFree reports whether t is an object with arbitrary members.
func isFree(t *schemas.Type) bool {
	return isMap(t) && (t.AdditionalProperties == nil || isAny(t.AdditionalProperties))
}

// sameForm reports whether two types may share a name.
func sameForm(a, b *goType) bool {
	if a.kind != b.kind || a.closed != b.closed || (a.beside == nil) != (b.beside == nil) ||
		a.elem.form() != b.elem.form() ||
		!slices.Equal(a.enum.values, b.enum.values) || !slices.Equal(a.union.lists, b.union.lists) {
		return false
	}
	return slices.EqualFunc(a.fields, b.fields, func(f, g *field) bool {
		return f.json == g.json && f.required == g.required && f.fallback == g.fallback && f.typ.form() == g.typ.form()
	}) && slices.EqualFunc(a.union.arms, b.union.arms, func(x, y *arm) bool { return x.name == y.name })
}
