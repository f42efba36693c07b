package main

import (
	"fmt"
	"strconv"
	"strings"
)

func (e *emitter) decoders(s *source) error {
	for _, t := range e.model.types {
		switch t.kind {
		case kindString, kindEnum:
			read := "readString[" + t.name + "](d)"
			if t.kind == kindEnum {
				read = "read" + t.name + "(d)"
			}
			s.line("func (v *%s) decode(d *decoder) (err error) {\n*v, err = %s\nreturn err\n}\n", t.name, read)
		case kindObject:
			s.line("func (v *%s) decode(d *decoder) error {\n*v = %s{}", t.name, t.name)
			e.objectLoop(s, t, e.readField, "err = d.unknown(&v.Extra, name)")
		case kindShape:
			s.line("func check%s(d *decoder) error {", upper(t.name))
			var failed error
			e.objectLoop(s, t, func(f *field) string {
				walk, err := e.walk(f.typ)
				if err != nil {
					failed = fmt.Errorf("%s/%s: %w", t.origin, f.json, err)
				}
				if f.required {
					return "err = " + call(walk, "d")
				}
				return "if null, nullErr := d.absent(); nullErr != nil {\nerr = nullErr\n} else if !null {\nerr = " + call(walk, "d") + "\n}"
			}, "err = d.SkipValue()")
			if failed != nil {
				return failed
			}
		}
	}
	return nil
}

// objectLoop writes the body of a function that reads an object of type t.
func (e *emitter) objectLoop(s *source, t *goType, read func(*field) string, unknown string) {
	var required []string
	s.line("if err := d.begin(); err != nil {\nreturn err\n}")
	for _, f := range t.fields {
		if f.required {
			required = append(required, f.json)
		}
	}
	if required != nil {
		s.line("var seen uint64")
	}
	s.line("for d.more() {\nname, err := d.name()\nif err != nil {\nreturn err\n}\nswitch string(name) {")
	bit := 0
	for _, f := range t.fields {
		s.line("case %q:", f.json)
		if f.required {
			s.line("seen |= 1 << %d", bit)
			bit++
		}
		s.line("%s", read(f))
	}
	s.line("default:\n%s\n}\nif err != nil {\nreturn err\n}\n}", unknown)
	s.line("if err := d.end(); err != nil {\nreturn err\n}")
	if required != nil {
		s.line("if seen != 1<<%d-1 {\nreturn d.lacks(seen, %s)\n}", bit, quoted(required))
	}
	s.line("return nil\n}\n")
}

// readField returns the statement that reads a member into its field.
func (e *emitter) readField(f *field) string {
	to := "v." + f.name
	switch {
	case f.constant:
		return "err = d.constant(" + strconv.Quote(f.typ.constant) + ")"
	case f.required && f.typ.kind == refNamed && e.decodes(f.typ):
		return "err = " + to + ".decode(d)"
	case f.required, f.typ.kind == refAny:
		return to + ", err = " + call(e.reader(f.typ), "d")
	case e.nilable(f.typ):
		return to + ", err = orNil(d, " + e.reader(f.typ) + ")"
	case f.typ.kind == refNamed && e.decodes(f.typ):
		return to + ", err = optionalPtr[" + f.typ.name + "](d)"
	}
	return to + ", err = optional(d, " + e.reader(f.typ) + ")"
}

// decodes reports whether values of a named type are read in their place.
func (e *emitter) decodes(r ref) bool {
	k := e.resolve(r).kind
	return k == kindObject || k == kindHand
}

// call applies a function expression: a method expression as a method, a
// literal by its body, which is one return.
func call(function, receiver string, args ...string) string {
	if _, body, ok := strings.Cut(function, "{ return "); ok && strings.HasPrefix(function, "func(") {
		return strings.TrimSuffix(body, " }")
	}
	args = append([]string{receiver}, args...)
	for _, prefix := range []string{"(*decoder).", "(*encoder)."} {
		if name, ok := strings.CutPrefix(function, prefix); ok {
			return receiver + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
		}
	}
	return function + "(" + strings.Join(args, ", ") + ")"
}

// reader returns the expression of a function that reads a value.
func (e *emitter) reader(r ref) string {
	wrap := func(body string) string {
		return "func(d *decoder) (" + r.String() + ", error) { return " + body + " }"
	}
	switch r.kind {
	case refString:
		return "(*decoder).string"
	case refBool:
		return "(*decoder).bool"
	case refInt:
		return "(*decoder).int"
	case refNumber:
		if r.min != nil {
			return wrap(fmt.Sprintf("d.between(%v, %v)", *r.min, *r.max))
		}
		return "(*decoder).number"
	case refAny:
		return "(*decoder).any"
	case refObject:
		return "(*decoder).object"
	case refMembers:
		return "(*decoder).members"
	case refShape:
		return wrap("readShape(d, check" + upper(r.name) + ")")
	case refMap:
		return wrap("readMap(d, " + e.reader(*r.elem) + ")")
	case refArray:
		if r.elem.kind == refNamed && e.decodes(*r.elem) {
			return "readObjects[" + r.elem.name + "]"
		}
		return wrap("readList(d, " + e.reader(*r.elem) + ")")
	}
	switch t := e.resolve(r); t.kind {
	case kindString:
		return "readString[" + r.name + "]"
	case kindEnum, kindUnion:
		return "read" + t.name
	}
	return "readObject[" + r.name + "]"
}

// walk returns the expression of a function that checks a value of a shape.
func (e *emitter) walk(r ref) (string, error) {
	switch r.kind {
	case refString:
		if r.constant != "" {
			return "func(d *decoder) error { return d.constant(" + strconv.Quote(r.constant) + ") }", nil
		}
		return "(*decoder).plain", nil
	case refAny:
		return "(*decoder).SkipValue", nil
	case refObject, refMembers:
		return "(*decoder).skipObject", nil
	case refArray, refMap:
		elem, err := e.walk(*r.elem)
		how := map[refKind]string{refArray: "each", refMap: "eachMember"}[r.kind]
		return "func(d *decoder) error { return d." + how + "(" + elem + ") }", err
	}
	return "", fmt.Errorf("no rule for %s in an object that stays raw", r)
}

func (e *emitter) encoders(s *source) error {
	for _, t := range e.model.types {
		switch t.kind {
		case kindString:
			s.line("func (v *%s) encode(e *encoder) { e.string(string(*v)) }\n", t.name)
		case kindEnum:
			s.line("func (v *%s) encode(e *encoder) { write%s(e, *v) }\n", t.name, t.name)
		case kindObject:
			e.objectEncoder(s, t)
		}
	}
	return nil
}

func (e *emitter) objectEncoder(s *source, t *goType) {
	s.line("func (v *%s) encode(e *encoder) {", t.name)
	s.line("if v == nil {\ne.fail(errNoValue)\nreturn\n}")
	start, known := "{", make([]string, len(t.fields))
	for i, f := range t.fields {
		known[i] = f.json
		if f.constant {
			start += strconv.Quote(f.json) + ":" + strconv.Quote(f.typ.constant) + ","
		}
	}
	s.line("e.b = append(e.b, %s...)", "`"+start+"`")
	for _, f := range t.fields {
		if !f.constant {
			s.line("%s", e.writeField(f))
		}
	}
	s.line("if len(v.Extra) > 0 {\ne.extra(v.Extra, %s)\n}", quoted(known))
	s.line("e.close('}')\n}\n")
}

// writeField returns the statement that writes a field's member.
func (e *emitter) writeField(f *field) string {
	from, name := "v."+f.name, strconv.Quote(f.json)
	inPlace := f.typ.kind == refNamed && e.decodes(f.typ)
	switch {
	case f.required && inPlace:
		return fmt.Sprintf("member(e, %s, &%s, writeValue)", name, from)
	case f.required:
		return fmt.Sprintf("member(e, %s, %s, %s)", name, from, e.writer(f.typ))
	case inPlace:
		return fmt.Sprintf("if %s != nil {\nmember(e, %s, %s, writeValue)\n}", from, name, from)
	case e.nilable(f.typ):
		return fmt.Sprintf("if %s != nil {\nmember(e, %s, %s, %s)\n}", from, name, from, e.writer(f.typ))
	}
	return fmt.Sprintf("maybe(e, %s, %s, %s)", name, from, e.writer(f.typ))
}

// writer returns the expression of a function that writes a value.
func (e *emitter) writer(r ref) string {
	wrap := func(body string) string {
		return "func(e *encoder, v " + r.String() + ") { " + body + " }"
	}
	switch r.kind {
	case refString:
		return "(*encoder).string"
	case refBool:
		return "(*encoder).bool"
	case refInt:
		return "(*encoder).int"
	case refNumber:
		if r.min != nil {
			return wrap(fmt.Sprintf("e.between(v, %v, %v)", *r.min, *r.max))
		}
		return "(*encoder).number"
	case refAny:
		return "(*encoder).any"
	case refObject:
		return "(*encoder).object"
	case refMembers:
		return "(*encoder).members"
	case refShape:
		return wrap("writeShape(e, v, check" + upper(r.name) + ")")
	case refMap:
		return wrap("writeMap(e, v, " + e.writer(*r.elem) + ")")
	case refArray:
		if r.elem.kind == refNamed && e.decodes(*r.elem) {
			return wrap("writeObjects(e, v)")
		}
		return wrap("writeList(e, v, " + e.writer(*r.elem) + ")")
	}
	switch t := e.resolve(r); t.kind {
	case kindString:
		return wrap("e.string(string(v))")
	case kindEnum:
		return "write" + t.name
	case kindUnion:
		return "writeValue"
	}
	return wrap("writeObject(e, v)")
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// marshalers gives the objects and strings the methods of both JSON packages.
func (e *emitter) marshalers(s *source) error {
	for _, t := range e.model.types {
		if t.kind != kindObject && t.kind != kindEnum && t.kind != kindString {
			continue
		}
		s.line("// MarshalJSON implements [encoding/json.Marshaler].")
		s.line("func (v %s) MarshalJSON() ([]byte, error) { return encode(&v) }\n", t.name)
		s.line("// UnmarshalJSON implements [encoding/json.Unmarshaler], as [Decode].")
		s.line("func (v *%s) UnmarshalJSON(b []byte) error { return decode(b, v, false) }\n", t.name)
		s.line("// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.")
		s.line("func (v %s) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, &v) }\n", t.name)
		s.line("// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.")
		s.line("func (v *%s) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, v) }\n", t.name)
	}
	return nil
}
