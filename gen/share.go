package main

import (
	"maps"
	"slices"
)

// share marks the types of m that can be aliases of the same types in base: scalars, enums,
// and objects made of these. An arm of a union cannot be an alias, because only types of
// the union's package can have its methods.
func share(m, base *model) {
	types, of := m.byName(), base.byName()
	arms := make(map[string]bool)
	for _, t := range m.types {
		for _, a := range t.union.arms {
			arms[a.name] = true
		}
	}
	shared := make(map[string]bool)
	for _, t := range m.types {
		switch other := of[t.name]; t.kind {
		case kindHand:
			shared[t.name] = true
		case kindObject, kindEnum, kindString:
			shared[t.name] = other != nil && !arms[t.name] && sameForm(t, other) && t.beside == nil && !t.closed
		}
	}
	for removed := true; removed; {
		removed = false
		for _, name := range slices.Sorted(maps.Keys(shared)) {
			ok := shared[name] && !slices.ContainsFunc(types[name].fields,
				func(f *field) bool { return !selfContained(f.typ, shared) })
			removed = removed || ok != shared[name]
			shared[name] = ok
		}
	}
	for _, t := range m.types {
		t.shared = shared[t.name]
	}
}

// selfContained reports whether the use of a type needs only shared types.
func selfContained(r ref, shared map[string]bool) bool {
	switch r.kind {
	case refNamed:
		return shared[r.name] && r.name != "ElicitValue" // which the base package reads without lists
	case refShape:
		return false
	case refArray, refMap, refNullable:
		return selfContained(*r.elem, shared)
	}
	return true
}

// sharedTypes writes the aliases for shared types. Their encode and decode are functions,
// because an alias cannot have methods in this package.
func (e *emitter) sharedTypes(s *source) {
	if e.base == "" {
		return
	}
	s.line("%s", sharedNames)
	for _, t := range e.model.types {
		if !t.shared {
			continue
		}
		text := handDocs[t.name]
		if text == "" {
			text = e.describe(t)
		}
		s.comment(text + "\n\nIt is an alias of the type in package mcptypes.")
		s.line("type %s = mcptypes.%s\n", t.name, t.name)
		switch t.kind {
		case kindEnum:
			s.line("// The values of %s.\nconst (", t.name)
			for i, v := range t.enum.values {
				s.line("%s = mcptypes.%s // %s", t.enum.names[i], t.enum.names[i], v)
			}
			s.line(")\n")
			e.enumCodec(s, t)
		case kindString:
			s.line("func encode%s(v *%s, e *codec.Encoder) { e.Str(string(*v)) }\n", t.name, t.name)
		case kindHand:
			s.line("%s", handCodecs[t.name])
		case kindObject:
			s.line("func decode%s(v *%s, d *codec.Decoder) error {\n*v = %s{}", t.name, t.name, t.name)
			e.objectLoop(s, t, e.readField, e.unknownMember(t))
			s.line("}\n")
			s.line("func encode%s(v *%s, e *codec.Encoder) {", t.name, t.name)
			e.objectBody(s, t)
		}
	}
}

// sharedNames are aliases of what the base package has in addition to the schema's types.
const sharedNames = `// These types are the same for every version.
type (
	// DecodeError is the place at which a value does not follow the schema, and the reason.
	DecodeError = mcptypes.DecodeError
	// Caller sends a request and waits for its result.
	Caller = mcptypes.Caller
	// Notifier sends a notification.
	Notifier = mcptypes.Notifier
	// Registrar registers the function that serves a method.
	Registrar = mcptypes.Registrar
	// Method is a request: its name and the types of its params and result.
	Method[P, R any] = mcptypes.Method[P, R]
	// UnionMethod is a request whose result is a union.
	UnionMethod[P any, R comparable] = mcptypes.UnionMethod[P, R]
	// NotificationMethod is a notification: its name and the type of its params.
	NotificationMethod[P any] = mcptypes.NotificationMethod[P]
)
`

// handDocs describe the types that are written by hand in the base package.
var handDocs = map[string]string{
	"RequestID": "RequestID names a JSON-RPC request: a string or an integer. It is comparable.",
	"ProgressToken": "ProgressToken connects progress notifications with the request that asked for them. It is " +
		"comparable.",
	"Base64": "Base64 is binary data, kept as the text that was sent.",
	"ElicitValue": "ElicitValue is what a person entered in one field of a form: a string, a number, a boolean or " +
		"a list of strings.",
}

// handCodecs is the code that reads and writes the hand-written types of the base package
// with its exported functions.
var handCodecs = map[string]string{
	"RequestID":     idCodec("RequestID"),
	"ProgressToken": idCodec("ProgressToken"),
	"Base64": `func decodeBase64(v *Base64, d *codec.Decoder) error { return codec.ReadString(v, d) }

func encodeBase64(v *Base64, e *codec.Encoder) { e.Str(string(*v)) }
`,
	"ElicitValue": `func decodeElicitValue(v *ElicitValue, d *codec.Decoder) error {
	raw, err := d.FormValue(true)
	if err != nil {
		return err
	}
	*v, err = mcptypes.ParseElicitValue(raw)
	return err
}

func encodeElicitValue(v *ElicitValue, e *codec.Encoder) {
	if s, ok := v.Str(); ok {
		e.Str(s)
	} else if v.IsZero() {
		e.Absent()
	} else {
		e.Raw(v.String())
	}
}
`,
}

func idCodec(name string) string {
	return `func decode` + name + `(v *` + name + `, d *codec.Decoder) error {
	return codec.Parsed(v, d, mcptypes.Parse` + name + `)
}

func encode` + name + `(v *` + name + `, e *codec.Encoder) {
	if v.IsZero() {
		e.Absent()
		return
	}
	e.Raw(v.String())
}
`
}
