package main

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// use resolves the schema of a member, element or map value. If that needs a new type, its
// name is that in typeNames, or else name.
func (b *builder) use(name, origin string, t *schemas.Type) (ref, error) {
	if row, ok := typeNames[place(origin)]; ok && b.mcp {
		name = row.name
	} else if row, ok := typeNames["*"+origin[strings.LastIndex(origin, "/"):]]; ok && b.mcp {
		name = row.name
	} else if b.mcp && (strings.HasSuffix(origin, "Request/params") || strings.HasSuffix(origin, "Notification/params")) {
		name = strings.TrimSuffix(origin, "/params") + "Params"
	}
	r, err := b.useShape(name, origin, t)
	r.constraint = both(r.constraint, constraint(t))
	return r, err
}

// useShape is use without the constraint.
func (b *builder) useShape(name, origin string, t *schemas.Type) (ref, error) {
	if isAny(t) {
		return ref{kind: refAny}, nil
	}
	if inner := nullable(t); inner != nil {
		elem, err := b.use(name, origin, inner)
		if elem.kind == refAny && elem.constraint == "" || elem.kind == refNullable {
			return elem, err
		}
		return ref{kind: refNullable, elem: &elem}, err
	}
	switch {
	case t.Ref != "":
		target, d, err := b.target(origin, t)
		if err != nil {
			return ref{}, err
		}
		if nullable(d) != nil {
			return ref{kind: refNullable, elem: &ref{kind: refNamed, name: b.goNames[target]}, constraint: constraint(d)}, nil
		}
		if !b.mcp {
			return ref{kind: refNamed, name: b.goNames[target]}, nil
		}
		direct, _ := refName(t)
		switch {
		case target == jsonValue.name && slices.Contains(jsonValue.forms, formOf(d)):
			return ref{kind: refJSON, name: target}, nil
		case isFree(d):
			return ref{kind: refMembers, name: b.goNames[direct]}, nil
		}
		return ref{kind: refNamed, name: b.goNames[direct]}, nil
	case b.mcp && isFormValue(t):
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case isChoice(t):
		name = b.claim(name, origin)
		return ref{kind: refNamed, name: name}, b.union(name, origin, t)
	case len(t.Enum) > 0:
		name = b.claim(name, origin)
		return ref{kind: refNamed, name: name}, b.enum(name, origin, t)
	case len(t.Type) > 1 && b.mcp && handWritten(name, t) == nil:
		return ref{kind: refNamed, name: name}, b.add(&goType{name: name, origin: origin, kind: kindHand})
	case len(t.Type) > 1:
		name = b.claim(name, origin)
		return ref{kind: refNamed, name: name}, b.union(name, origin, byType(t))
	case len(t.Type) == 0:
		return ref{}, b.refuse(origin, "no rule for a schema without a type")
	}
	return b.useType(name, origin, t)
}

func (b *builder) useType(name, origin string, t *schemas.Type) (ref, error) {
	if t.Const != nil && t.Type[0] != "string" && t.Type[0] != "integer" {
		return ref{}, b.refuse(origin, "no rule for a constant of type %q", t.Type[0])
	}
	switch t.Type[0] {
	case "string":
		if t.Const != nil {
			s, ok := t.Const.(string)
			if !ok {
				return ref{}, b.refuse(origin, "no rule for the constant %v", t.Const)
			}
			if s == "" { // ref has no other sign of a constant
				return ref{kind: refString, constraint: `{"const":""}`}, nil
			}
			return ref{kind: refString, constant: s}, nil
		}
		if t.Format == "byte" && b.mcp {
			return ref{kind: refNamed, name: "Base64"}, b.add(&goType{name: "Base64", kind: kindHand})
		}
		return ref{kind: refString}, nil
	case "boolean":
		return ref{kind: refBool}, nil
	case "null":
		return ref{kind: refAny, constraint: `{"type":"null"}`}, nil
	case "integer":
		if t.Const != nil {
			return b.constantInt(origin, t)
		}
		return ref{kind: refInt, min: t.Minimum, max: t.Maximum}, nil
	case "number":
		return ref{kind: refNumber, min: t.Minimum, max: t.Maximum}, nil
	case "array":
		items := t.Items
		if items == nil {
			items = new(schemas.Type)
		}
		elem, err := b.use(name+"Item", origin+"/*", items)
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
	raw = raw && b.mcp
	open := t.AdditionalProperties == nil || isFreeValue(t.AdditionalProperties)
	switch {
	case len(t.Properties) > 0 && raw:
		return ref{kind: refShape, name: lower(name)}, b.object(name, origin, t)
	case len(t.Properties) > 0, !isMap(t):
		name = b.claim(name, origin)
		return ref{kind: refNamed, name: name}, b.object(name, origin, t)
	case open && (raw || b.mcp && strings.HasSuffix(origin, "/*")):
		return ref{kind: refObject}, nil
	case open:
		return ref{kind: refMembers}, nil
	}
	elem, err := b.use(name+"Value", origin+"/*", t.AdditionalProperties)
	return ref{kind: refMap, elem: &elem}, err
}
