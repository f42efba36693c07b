package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

func (e *emitter) decoders(s *source) error {
	for _, t := range e.model.types {
		if t.shared {
			continue
		}
		switch t.kind {
		case kindString, kindEnum:
			read := "codec.ReadString[" + t.name + "](d)"
			if t.kind == kindEnum {
				read = "read" + t.name + "(d)"
			}
			s.line("func (v *%s) decode(d *codec.Decoder) (err error) {\n*v, err = %s\nreturn err\n}\n", t.name, read)
		case kindList, kindMap:
			s.line("func (v *%s) decode(d *codec.Decoder) (err error) {\n*v, err = read%s(d)\nreturn err\n}\n", t.name, t.name)
			s.line("func read%s(d *codec.Decoder) (%s, error) { return %s }\n", t.name, t.name, call(e.reader(t.content()), "d"))
		case kindObject:
			s.line("func (v *%s) decode(d *codec.Decoder) error {\n*v = %s{}", t.name, t.name)
			switch {
			case t.beside != nil:
				e.besideDecoder(s, t)
			case t.closed:
				s.line("return d.Empty()\n}\n")
			default:
				e.objectLoop(s, t, e.readField, unknownMember)
			}
		case kindShape:
			s.line("func check%s(d *codec.Decoder) error {", upper(t.name))
			var failed error
			e.objectLoop(s, t, func(f *field) string {
				walk, err := e.walk(f.typ)
				if err != nil {
					failed = fmt.Errorf("%s/%s: %w", t.origin, f.json, err)
				}
				if f.required {
					return "err = " + call(walk, "d")
				}
				return "if null, nullErr := d.Absent(); nullErr != nil {\nerr = nullErr\n} else if !null {\nerr = " + call(walk, "d") + "\n}"
			}, "err = d.SkipValue()")
			if failed != nil {
				return failed
			}
		}
	}
	return nil
}

// content returns the ref of a list or map.
func (t *goType) content() ref {
	if t.kind == kindMap {
		return ref{kind: refMap, elem: &t.elem}
	}
	return ref{kind: refArray, elem: &t.elem, most: t.max}
}

// unknownMember is the statement that reads a member without a field.
const unknownMember = "err = d.Unknown(&v.Extra, name)"

// besideDecoder writes the rest of a method that reads an object whose members are mixed
// with those of a union.
func (e *emitter) besideDecoder(s *source, t *goType) {
	union := e.resolve(t.beside.typ)
	s.line("var err error")
	s.line("v.%s, err = codec.ReadBeside(d, %q, v.members, arm%s, %s)", t.beside.name, union.member, union.name, quoted(memberNames(t)))
	s.line("if unknown, ok := v.%s.(*Unknown); ok {\nreturn d.NotKnown(%q, unknown.Tag)\n}", t.beside.name, union.member)
	s.line("return err\n}\n")
	s.line("// members reads the members that do not belong to %s.", t.beside.name)
	s.line("func (v *%s) members(d *codec.Decoder) error {", t.name)
	e.objectLoop(s, t, e.readField, "err = d.SkipBeside(name)")
}

func memberNames(t *goType) (names []string) {
	for _, f := range t.fields {
		names = append(names, f.json)
	}
	return names
}

// objectLoop writes the body of a function that reads an object of type t.
func (e *emitter) objectLoop(s *source, t *goType, read func(*field) string, unknown string) {
	var required []string
	s.line("if err := d.Begin(); err != nil {\nreturn err\n}")
	for _, f := range t.fields {
		if f.required {
			required = append(required, f.json)
		}
	}
	if required != nil {
		s.line("var seen uint64")
	}
	guards := e.guards(t)
	if guards != nil {
		s.line(`variant := ""`)
	}
	s.line("for d.More() {\nname, err := d.Name()\nif err != nil {\nreturn err\n}\nswitch string(name) {")
	bit := 0
	for _, f := range t.fields {
		s.line("case %q:", f.json)
		if f.required {
			s.line("seen |= 1 << %d", bit)
			bit++
		}
		s.line("%s", read(f))
	}
	s.line("default:")
	if guards != nil {
		s.line("variant = codec.Variant(variant, name, %s)", quoted(guards))
	}
	s.line("%s\n}\nif err != nil {\nreturn err\n}\n}", unknown)
	s.line("if err := d.End(); err != nil {\nreturn err\n}")
	if required != nil {
		s.line("if seen != 1<<%d-1 {\nreturn d.Lacks(seen, %s)\n}", bit, quoted(required))
	}
	if guards != nil {
		s.line("if variant != \"\" {\nreturn d.Ambiguous(variant)\n}")
	}
	s.line("return nil\n}\n")
}

// guards returns the members of an object that are in the table guarded.
func (e *emitter) guards(t *goType) (names []string) {
	const before = "2025-06-18" // the examples of that version have such names
	if e.version <= before || t.kind != kindObject {
		return nil
	}
	for _, row := range []string{t.origin, "*"} {
		for _, name := range guarded[row].members {
			for _, f := range t.fields {
				if f.json == name {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// readField returns the statement that reads a member into its field.
func (e *emitter) readField(f *field) string {
	to := "v." + f.name
	inPlace := f.typ.kind == refNamed && e.decodes(f.typ)
	switch {
	case f.constant && f.typ.kind == refInt:
		return "err = d.ConstantInt(" + f.typ.constant + ")"
	case f.constant:
		return "err = d.Constant(" + strconv.Quote(f.typ.constant) + ")"
	case f.fallback != "":
		return to + ", err = codec.Pointer(d, " + e.reader(f.typ) + ")"
	case f.required && inPlace && e.resolve(f.typ).shared:
		return "err = decode" + f.typ.name + "(&" + to + ", d)"
	case f.required && inPlace:
		return "err = " + to + ".decode(d)"
	case f.required, f.typ.kind == refAny:
		return to + ", err = " + call(e.reader(f.typ), "d")
	case e.nilable(f.typ):
		return to + ", err = codec.OrNil(d, " + e.reader(f.typ) + ")"
	case inPlace:
		return to + ", err = codec.OptionalPtr(d, " + e.decoder(f.typ) + ")"
	}
	return to + ", err = codec.Optional(d, " + e.reader(f.typ) + ")"
}

// decodes reports whether values of a named type are decoded in place.
func (e *emitter) decodes(r ref) bool {
	k := e.resolve(r).kind
	return k == kindObject || k == kindHand
}

// decoder returns the expression of the function that decodes a value in place.
func (e *emitter) decoder(r ref) string { return e.inPlace(r, "decode") }

// encoder returns the expression of the function that encodes a value in place.
func (e *emitter) encoder(r ref) string { return e.inPlace(r, "encode") }

func (e *emitter) inPlace(r ref, what string) string {
	if e.resolve(r).shared {
		return what + r.name
	}
	return "(*" + r.name + ")." + what
}

// call returns the call of a function expression: a method call for a method expression,
// the body for a function literal, which has one return.
func call(function, receiver string, args ...string) string {
	if _, body, ok := strings.Cut(function, "{ return "); ok && strings.HasPrefix(function, "func(") {
		return strings.TrimSuffix(body, " }")
	}
	args = append([]string{receiver}, args...)
	for _, prefix := range []string{"(*codec.Decoder).", "(*codec.Encoder)."} {
		if name, ok := strings.CutPrefix(function, prefix); ok {
			return receiver + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
		}
	}
	return function + "(" + strings.Join(args, ", ") + ")"
}

// bounds returns the limits of a number in Go syntax.
func (r ref) bounds() string {
	low, high := strconv.Itoa(math.MinInt64), strconv.Itoa(math.MaxInt64)
	if r.min != nil {
		low = strconv.FormatFloat(*r.min, 'f', -1, 64)
	}
	if r.max != nil {
		high = strconv.FormatFloat(*r.max, 'f', -1, 64)
	}
	return low + ", " + high
}

func (r ref) bounded() bool { return r.min != nil || r.max != nil }

// reader returns the expression of a function that reads a value.
func (e *emitter) reader(r ref) string {
	wrap := func(body string) string {
		return "func(d *codec.Decoder) (" + r.String() + ", error) { return " + body + " }"
	}
	switch r.kind {
	case refString:
		return "(*codec.Decoder).Str"
	case refBool:
		return "(*codec.Decoder).Bool"
	case refInt:
		if r.bounded() {
			return wrap("d.IntBetween(" + r.bounds() + ")")
		}
		return "(*codec.Decoder).Int"
	case refNumber:
		if r.bounded() {
			return wrap("d.Between(" + r.bounds() + ")")
		}
		return "(*codec.Decoder).Number"
	case refAny:
		return "(*codec.Decoder).Any"
	case refJSON:
		return "(*codec.Decoder).JSON"
	case refObject:
		return "(*codec.Decoder).Object"
	case refMembers:
		return "(*codec.Decoder).Members"
	case refNullable:
		return wrap("codec.Nullable(d, " + e.reader(*r.elem) + ")")
	case refShape:
		return wrap("codec.ReadShape(d, check" + upper(r.name) + ")")
	case refMap:
		return wrap("codec.ReadMap(d, " + e.reader(*r.elem) + ")")
	case refArray:
		read := "codec.ReadList(d, " + e.reader(*r.elem) + ")"
		if r.elem.kind == refNamed && e.decodes(*r.elem) {
			read = "codec.ReadObjects(d, " + e.decoder(*r.elem) + ")"
		}
		if r.most > 0 {
			return wrap(fmt.Sprintf("codec.AtMost(d, %d, %s)", r.most, wrap(read)))
		}
		return wrap(read)
	}
	switch t := e.resolve(r); t.kind {
	case kindString:
		return "codec.ReadString[" + r.name + "]"
	case kindEnum, kindUnion, kindList, kindMap:
		return "read" + t.name
	}
	return wrap("codec.ReadValue(d, " + e.decoder(r) + ")")
}

// walk returns the expression of a function that checks a value without decoding it.
func (e *emitter) walk(r ref) (string, error) {
	switch r.kind {
	case refString:
		if r.constant != "" {
			return "func(d *codec.Decoder) error { return d.Constant(" + strconv.Quote(r.constant) + ") }", nil
		}
		return "(*codec.Decoder).SkipString", nil
	case refAny:
		return "(*codec.Decoder).SkipValue", nil
	case refObject, refMembers:
		return "(*codec.Decoder).SkipObject", nil
	case refArray, refMap:
		if r.most > 0 {
			return "", fmt.Errorf("no rule for maxItems in an object that stays raw")
		}
		elem, err := e.walk(*r.elem)
		how := map[refKind]string{refArray: "Each", refMap: "EachMember"}[r.kind]
		return "func(d *codec.Decoder) error { return d." + how + "(" + elem + ") }", err
	}
	return "", fmt.Errorf("no rule for %s in an object that stays raw", r)
}

func (e *emitter) encoders(s *source) error {
	for _, t := range e.model.types {
		if t.shared {
			continue
		}
		switch t.kind {
		case kindString:
			s.line("func (v *%s) encode(e *codec.Encoder) { e.Str(string(*v)) }\n", t.name)
		case kindEnum:
			s.line("func (v *%s) encode(e *codec.Encoder) { write%s(e, *v) }\n", t.name, t.name)
		case kindList, kindMap:
			s.line("func (v %s) encode(e *codec.Encoder) { write%s(e, v) }\n", t.name, t.name)
			_, body, _ := strings.Cut(e.writer(t.content()), "{")
			s.line("func write%s(e *codec.Encoder, v %s) {%s\n", t.name, t.name, body)
		case kindObject:
			e.objectEncoder(s, t)
		}
	}
	return nil
}

func (e *emitter) objectEncoder(s *source, t *goType) {
	s.line("func (v *%s) encode(e *codec.Encoder) {", t.name)
	e.objectBody(s, t)
}

// objectBody writes the body of a function that writes the object v.
func (e *emitter) objectBody(s *source, t *goType) {
	s.line("if v == nil {\ne.Fail(codec.ErrNoValue)\nreturn\n}")
	var start strings.Builder
	start.WriteString("{")
	for _, f := range t.fields {
		switch {
		case f.constant && f.typ.kind == refInt:
			start.WriteString(strconv.Quote(f.json) + ":" + f.typ.constant + ",")
		case f.constant:
			start.WriteString(strconv.Quote(f.json) + ":" + strconv.Quote(f.typ.constant) + ",")
		}
	}
	s.line("e.Open(%s)", "`"+start.String()+"`")
	for _, f := range t.fields {
		if !f.constant {
			s.line("%s", e.writeField(f))
		}
	}
	known, guards := quoted(memberNames(t)), e.guards(t)
	switch {
	case t.beside != nil:
		union := e.resolve(t.beside.typ)
		s.line("switch arm := v.%s.(type) {", t.beside.name)
		for _, a := range union.arms {
			s.line("case *%s:\nif arm == nil {\ne.Fail(codec.ErrNoValue)\nreturn\n}", a.name)
			if guards != nil {
				s.line("e.Guard(arm.Extra, %s)", quoted(guards))
			}
			s.line("codec.Beside(e, arm, (*%s).encode, arm.Extra, %s)", a.name, known)
		}
		s.line("default:\ne.Fail(codec.ErrNoValue)\n}")
	case guards != nil:
		s.line("if len(v.Extra) > 0 {\ne.Guard(v.Extra, %s)\ne.Extra(v.Extra, %s)\n}", quoted(guards), known)
	case !t.closed:
		s.line("if len(v.Extra) > 0 {\ne.Extra(v.Extra, %s)\n}", known)
	}
	s.line("e.Close('}')\n}\n")
}

// writeField returns the statement that writes a field's member.
func (e *emitter) writeField(f *field) string {
	from, name := "v."+f.name, strconv.Quote(f.json)
	inPlace := f.typ.kind == refNamed && e.decodes(f.typ)
	switch {
	case f.fallback != "":
		return fmt.Sprintf("codec.Member(e, %s, codec.Or(%s, %q), %s)", name, from, f.fallback, e.writer(f.typ))
	case f.required && inPlace:
		return fmt.Sprintf("codec.MemberOf(e, %s, &%s, %s)", name, from, e.encoder(f.typ))
	case f.required:
		return fmt.Sprintf("codec.Member(e, %s, %s, %s)", name, from, e.writer(f.typ))
	case inPlace:
		return fmt.Sprintf("if %s != nil {\ncodec.MemberOf(e, %s, %s, %s)\n}", from, name, from, e.encoder(f.typ))
	case e.nilable(f.typ):
		return fmt.Sprintf("if %s != nil {\ncodec.Member(e, %s, %s, %s)\n}", from, name, from, e.writer(f.typ))
	}
	return fmt.Sprintf("codec.Maybe(e, %s, %s, %s)", name, from, e.writer(f.typ))
}

// writer returns the expression of a function that writes a value.
func (e *emitter) writer(r ref) string {
	wrap := func(body string) string {
		return "func(e *codec.Encoder, v " + r.String() + ") { " + body + " }"
	}
	switch r.kind {
	case refString:
		return "(*codec.Encoder).Str"
	case refBool:
		return "(*codec.Encoder).Bool"
	case refInt:
		if r.bounded() {
			return wrap("e.IntBetween(v, " + r.bounds() + ")")
		}
		return "(*codec.Encoder).Int"
	case refNumber:
		if r.bounded() {
			return wrap("e.Between(v, " + r.bounds() + ")")
		}
		return "(*codec.Encoder).Number"
	case refAny:
		return "(*codec.Encoder).Any"
	case refJSON:
		return "(*codec.Encoder).JSON"
	case refObject:
		return "(*codec.Encoder).Object"
	case refMembers:
		return "(*codec.Encoder).Members"
	case refNullable:
		return wrap("codec.WriteNullable(e, v, " + e.writer(*r.elem) + ")")
	case refShape:
		return wrap("codec.WriteShape(e, v, check" + upper(r.name) + ")")
	case refMap:
		return wrap("codec.WriteMap(e, v, " + e.writer(*r.elem) + ")")
	case refArray:
		write := "codec.WriteList(e, v, " + e.writer(*r.elem) + ")"
		if r.elem.kind == refNamed && e.decodes(*r.elem) {
			write = "codec.WriteObjects(e, v, " + e.encoder(*r.elem) + ")"
		}
		if r.most > 0 {
			write = fmt.Sprintf("if e.AtMost(%d, len(v)) {\n%s\n}\n", r.most, write)
		}
		return wrap(write)
	}
	switch t := e.resolve(r); t.kind {
	case kindString:
		return wrap("e.Str(string(v))")
	case kindEnum, kindList, kindMap:
		return "write" + t.name
	case kindUnion:
		return wrap("codec.WriteUnion(e, v, " + t.name + ".encode)")
	}
	return wrap("codec.WriteValue(e, v, " + e.encoder(r) + ")")
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// marshalers writes the methods of the types for both JSON packages.
func (e *emitter) marshalers(s *source) error {
	for _, t := range e.model.types {
		receiver, encode := "&v", "(*"+t.name+").encode"
		switch t.kind {
		case kindObject, kindEnum, kindString:
		case kindList, kindMap:
			receiver, encode = "v", t.name+".encode"
		default:
			continue
		}
		if t.shared {
			continue
		}
		s.line("// MarshalJSON implements [encoding/json.Marshaler].")
		s.line("func (v %s) MarshalJSON() ([]byte, error) { return codec.Encode(%s, %s) }\n", t.name, receiver, encode)
		s.line("// UnmarshalJSON implements [encoding/json.Unmarshaler] as [Decode] does.")
		s.line("func (v *%s) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }\n", t.name)
		s.line("// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.")
		s.line("func (v %s) MarshalJSONTo(enc *jsontext.Encoder) error { return codec.EncodeTo(enc, %s, %s) }\n", t.name, receiver, encode)
		s.line("// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.")
		s.line("func (v *%s) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, v) }\n", t.name)
	}
	return nil
}
