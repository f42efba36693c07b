package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// builder makes a model from a parsed schema. A construct without a rule is an error that
// names the place.
type builder struct {
	*parsed
	goNames map[string]string        // of the definitions
	places  map[string]string        // the origins of types by Go name, unless the tables apply
	shapes  map[string]*schemas.Type // the schemas of objects by Go name
	types   map[string]*goType
	partial map[string]bool // the definitions whose types do not admit all of their values
	making  map[string]bool // the places of the arms that are being made
}

// ownNames are the names that every generated package has.
var ownNames = []string{"AppendJSON", "Decode", "DecodeStrict", "Encode", "Unknown"}

// buildModel makes the model of a schema.
func buildModel(schema *parsed) (*model, error) {
	b := &builder{
		schema, make(map[string]string), make(map[string]string), make(map[string]*schemas.Type), make(map[string]*goType), make(map[string]bool), make(map[string]bool),
	}
	b.extend()
	for _, name := range ownNames {
		b.places[name] = "/"
	}
	for _, exact := range []bool{true, false} { // a definition whose name is a Go name keeps it
		for _, name := range slices.Sorted(maps.Keys(b.definitions)) {
			goName := nameOr(name, "Definition")
			if row, ok := definitionNames[name]; ok && b.mcp {
				goName = row.name
			}
			if exact == (goName == name) {
				b.goNames[name] = free(goName, func(s string) bool { return b.places[s] != "" })
				b.places[b.goNames[name]] = name
			}
		}
	}
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
	m := &model{mcp: b.mcp, pointers: maps.Clone(b.pointers), extension: b.extension}
	for name := range b.partial {
		delete(m.pointers, name)
	}
	for _, name := range slices.Sorted(maps.Keys(b.types)) {
		t := b.types[name]
		for _, f := range t.fields {
			if f.typ.kind == refNamed && b.types[f.typ.name] == nil {
				return nil, b.refuse(t.origin+"/"+f.json, "no rule makes its type %s", f.typ.name)
			}
			if b.contains(f, t.name, nil) {
				return nil, b.refuse(t.origin+"/"+f.json, "every value would contain another one")
			}
		}
		b.nameValues(t)
		m.types = append(m.types, t)
	}
	if !b.mcp {
		return m, nil
	}
	var err error
	m.methods, err = b.methods()
	return m, err
}

// nameValues names the constants of an enum.
func (b *builder) nameValues(t *goType) {
	for i, v := range t.enum.values {
		name := t.name + nameOr(v, map[bool]string{true: "Empty", false: fmt.Sprintf("Value%d", i+1)}[v == ""])
		name = free(name, func(s string) bool { return b.types[s] != nil || slices.Contains(t.enum.names, s) || b.places[s] != "" })
		t.enum.names = append(t.enum.names, name)
		if !b.mcp {
			b.places[name] = t.origin
		}
	}
}

// contains reports whether a value of the field always contains a value of the named type.
func (b *builder) contains(f *field, name string, seen []string) bool {
	if !f.required || f.typ.kind != refNamed || slices.Contains(seen, f.typ.name) {
		return false
	}
	t := b.types[f.typ.name]
	for t != nil && t.kind == kindAlias {
		t = b.types[t.target]
	}
	if t == nil || t.kind != kindObject {
		return false
	}
	return t.name == name || slices.ContainsFunc(t.fields, func(g *field) bool { return b.contains(g, name, append(seen, f.typ.name)) })
}

// claim returns the name for the type at a place: the wanted one, unless another place has it.
// The tables let places share a type of the same form.
func (b *builder) claim(wanted, origin string) string {
	if b.mcp {
		return wanted
	}
	name := free(wanted, func(s string) bool { return b.places[s] != "" && b.places[s] != origin })
	b.places[name] = origin
	return name
}

// constraint returns the schema that only the strict decoder checks, as text, or "".
func constraint(t *schemas.Type) string {
	if t.GoJSONSchemaExtension == nil || t.GoJSONSchemaExtension.Type == nil {
		return ""
	}
	return *t.GoJSONSchemaExtension.Type
}

// add records a type. Two places may share a type of the same form.
func (b *builder) add(t *goType) error {
	old, ok := b.types[t.name]
	if !ok {
		b.types[t.name] = t
		return nil
	}
	if !sameForm(old, t) {
		return b.refuse(t.origin, "its type would be called %s, as that of %s: it needs a row in typeNames", t.name, b.pointer(old.origin))
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
	goName := b.goNames[name]
	out := &goType{name: goName, origin: name, doc: t.Description, constraint: constraint(t)}
	if row, ok := copies[name]; ok && b.mcp && b.definitions[row.of] != nil && len(t.AnyOf) == 0 {
		out.kind, out.target = kindAlias, row.of
		return b.add(out)
	}
	for t.Ref != "" || nullable(t) != nil {
		if inner := nullable(t); inner != nil {
			b.partial[name] = true // only its uses may be null
			if outer := constraint(t); outer != "" {
				inner = constrained(inner, outer)
			}
			t = inner
			out.constraint = constraint(t)
			continue
		}
		target, d, err := b.target(name, t)
		switch check := constraint(t); {
		case err != nil:
			return err
		case check != "":
			d = constrained(d, check)
			out.constraint = constraint(d)
		case nullable(d) == nil:
			out.kind, out.target = kindAlias, b.goNames[target]
			return b.add(out)
		}
		t = d
	}
	return b.named(goName, name, t, out)
}

// nullable returns the schema of the values but null if t admits null besides others, or nil.
func nullable(t *schemas.Type) *schemas.Type {
	plain := *t
	switch {
	case len(t.Type) == 2 && t.Type[1] == "null":
		plain.Type = t.Type[:1]
	case len(t.AnyOf) == 2 && slices.Equal(t.AnyOf[1].Type, []string{"null"}):
		plain = *t.AnyOf[0]
		plain.Description, plain.Title = cmp.Or(t.Description, plain.Description), cmp.Or(t.Title, plain.Title)
	default:
		return nil
	}
	return &plain
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
		if d.Ref == "" || constraint(d) != "" {
			return name, d, nil
		}
		t = d
	}
	return "", nil, b.refuse(origin, "the definition contains itself")
}

// named makes a type with the name goName for the schema at origin.
func (b *builder) named(goName, origin string, t *schemas.Type, out *goType) error {
	if !b.mcp || handWritten(goName, t) != nil {
		t = byType(t)
	}
	switch {
	case b.mcp && origin == jsonValue.name && slices.Contains(jsonValue.forms, formOf(t)):
		out.kind = kindJSON
	case isChoice(t) && nullable(t) == nil:
		return b.union(goName, origin, t)
	case len(t.Enum) > 0:
		return b.enum(goName, origin, t)
	case b.mcp && len(t.Type) > 1 && handWritten(goName, t) == nil:
		out.kind = kindHand
	case slices.Equal(t.Type, []string{"string"}) && t.Const == nil:
		out.kind = kindString
	case slices.Equal(t.Type, []string{"array"}):
		return b.list(goName, origin, t)
	case b.mcp && isFree(t):
		out.kind = kindMembers
	case isMap(t) && !isFree(t):
		elem, err := b.use(goName+"Value", origin+"/*", t.AdditionalProperties)
		if err != nil {
			return err
		}
		out.kind, out.elem = kindMap, elem
	case slices.Equal(t.Type, []string{"object"}) && !isFree(t):
		return b.object(goName, origin, t)
	default:
		elem, err := b.useShape(goName, origin, t)
		if err != nil {
			return err
		}
		if elem.kind == refNamed && b.types[elem.name] != nil && elem.name == goName {
			return nil // it has made the type
		}
		out.kind, out.elem = kindNamed, elem
		if elem.kind == refNullable || elem.kind == refNamed {
			return b.refuse(origin, "no rule for a type that is %s", elem)
		}
		out.constraint = both(out.constraint, elem.constraint)
		out.elem.constraint = ""
		if elem.constant != "" {
			out.elem, out.constraint = ref{kind: elem.kind}, both(out.constraint, compact(map[string]any{"const": t.Const}))
		}
	}
	return b.add(out)
}

// byType returns a list of types as a choice, and any other schema as it is.
func byType(t *schemas.Type) *schemas.Type {
	if len(t.Type) < 2 || nullable(t) != nil {
		return t
	}
	choice := &schemas.Type{Description: t.Description, Title: t.Title, GoJSONSchemaExtension: t.GoJSONSchemaExtension}
	for _, kind := range t.Type {
		arm := *t
		arm.Type, arm.Title, arm.GoJSONSchemaExtension = []string{kind}, "", nil
		choice.AnyOf = append(choice.AnyOf, &arm)
	}
	return choice
}

// both returns a schema, as text, for what two schemas admit.
func both(x, y string) string {
	switch {
	case x == "" || x == y:
		return y
	case y == "":
		return x
	}
	return `{"allOf":[` + x + "," + y + "]}"
}

// isChoice reports whether a schema is a choice.
func isChoice(t *schemas.Type) bool { return len(t.AnyOf)+len(t.OneOf) > 0 && len(t.Properties) == 0 }

// refuse returns an error with the JSON pointer to a place of the schema.
func (b *builder) refuse(origin, format string, args ...any) error {
	return refuse(b.pointer(origin), format, args...)
}

// pointer returns the JSON pointer to the schema at origin.
func (b *builder) pointer(origin string) string {
	name, rest, _ := strings.Cut(origin, "/")
	pointer, t := cmp.Or(b.pointers[name], b.container+"/"+escape(name)), b.definitions[name]
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
		if !b.mcp {
			break
		}
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
	return len(t.AnyOf) == 2 && len(t.AnyOf[1].Type) > 1 && formOf(t.AnyOf[0]) == `{"items":{"type":["string"]},"type":["array"]}` &&
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
	return slices.Equal(t.Type, []string{"object"}) && len(t.Properties) == 0 && len(t.Required) == 0 && !isChoice(t) && !isClosed(t)
}

// isFree reports whether t is an object with arbitrary members.
func isFree(t *schemas.Type) bool {
	return isMap(t) && (t.AdditionalProperties == nil || isFreeValue(t.AdditionalProperties))
}

// list makes the type of a definition that is an array.
func (b *builder) list(goName, origin string, t *schemas.Type) error {
	r, err := b.useType(goName, origin, t)
	if err != nil {
		return err
	}
	return b.add(&goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindList, elem: *r.elem, max: r.most, constraint: constraint(t)})
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
	if !strings.Contains(origin, "/") {
		out.constraint = constraint(t)
	}
	for _, v := range t.Enum {
		s, ok := v.(string)
		if !ok {
			return b.refuse(origin, "no rule for the enum value %v", v)
		}
		if !slices.Contains(out.enum.values, s) {
			out.enum.values = append(out.enum.values, s)
		}
	}
	return b.add(out)
}

// restoreMeta returns the _meta that the schema lost from the params at origin, or nil.
func (b *builder) restoreMeta(origin string, fields []*field) *field {
	definition, ok := strings.CutSuffix(origin, "/params")
	if !ok || !b.mcp || slices.ContainsFunc(fields, func(f *field) bool { return f.json == "_meta" }) {
		return nil
	}
	for _, end := range slices.Sorted(maps.Keys(lostMeta)) {
		if row := lostMeta[end]; strings.HasSuffix(definition, end) {
			f := &field{json: "_meta", name: "Meta", typ: ref{kind: refMembers}, restored: true, common: commonFields["_meta"]}
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
