package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

func (e *emitter) decoders(s *source) {
	for _, t := range e.own {
		switch t.kind {
		case kindString, kindEnum:
			read := "codec.ReadString(v, d)"
			if t.kind == kindEnum {
				read = "read" + t.name + "(v, d)"
			}
			s.line("func (v *%s) decode(d *codec.Decoder) error { return %s }\n", t.name, read)
		case kindList, kindMap:
			s.line("func (v *%s) decode(d *codec.Decoder) error { return read%s(v, d) }\n", t.name, t.name)
			read := e.read(t.content(), "(*"+t.content().String()+")(v)")
			s.line("func read%s(v *%s, d *codec.Decoder) error { return %s }\n", t.name, t.name, read)
		case kindObject:
			s.line("func (v *%s) decode(d *codec.Decoder) error {\n*v = %s{}", t.name, t.name)
			switch {
			case t.beside != nil:
				e.besideDecoder(s, t)
			case t.closed && len(t.fields) == 0:
				s.line("return d.Empty()\n}\n")
			case t.closed:
				e.failed = fmt.Errorf("%s: no rule for an object that is closed and has members", t.origin)
			default:
				e.objectLoop(s, t, e.readField, e.unknownMember(t))
				s.line("}\n")
			}
		case kindShape:
			s.line("func check%s(d *codec.Decoder) error {", upper(t.name))
			e.objectLoop(s, t, func(f *field) string {
				walk, err := e.walk(f.typ)
				if err != nil {
					e.failed = fmt.Errorf("%s/%s: %w", t.origin, f.json, err)
				}
				return call(walk)
			}, "d.SkipValue()")
			s.line("}\n")
		}
	}
}

// content returns the ref of a list or map.
func (t *goType) content() ref {
	if t.kind == kindMap {
		return ref{kind: refMap, elem: &t.elem}
	}
	return ref{kind: refArray, elem: &t.elem, most: t.max}
}

// unknownMember returns the expression that reads a member without a field.
func (e *emitter) unknownMember(t *goType) string {
	if guards := e.guards(t); guards != nil {
		return "d.UnknownBut(" + spaced(guards) + ", &v.Extra, name)"
	}
	return "d.Unknown(&v.Extra, name)"
}

// besideDecoder writes the rest of a method that reads an object whose members are mixed
// with those of a union.
func (e *emitter) besideDecoder(s *source, t *goType) {
	to, skip := "v."+t.beside.name, "d.SkipValue()"
	if guards := e.guards(t); guards != nil {
		skip = "d.Skip(" + spaced(guards) + ", name)"
	}
	s.line("return d.Beside(func(d *codec.Decoder) (map[string]json.RawMessage, error) {")
	s.line("if err := %s; err != nil {\nreturn nil, err\n}", e.read(t.beside.typ, "&"+to))
	s.line("if arm, ok := %s.(*Unknown); ok {\nreturn nil, d.WrongTag(%q, arm.Tag)\n}", to,
		e.resolve(t.beside.typ).union.member)
	s.line("return %s.extra(), nil\n}, %s, func(d *codec.Decoder) error {", to, spaced(memberNames(t)))
	e.objectLoop(s, t, e.readField, skip)
	s.line("})\n}\n")
}

// memberNames returns the names that are not among the unknown members.
func memberNames(t *goType) (names []string) {
	for _, f := range t.fields {
		names = append(names, f.json)
	}
	return append(names, t.envelope()...)
}

// envelope returns the members of JSON-RPC if t is a message whose definition leaves them
// out.
func (t *goType) envelope() []string {
	isMessage := false
	for _, f := range t.fields {
		isMessage = isMessage || f.json == "method" && f.constant
		if slices.Contains(envelope, f.json) {
			return nil
		}
	}
	if !isMessage || t.kind != kindObject {
		return nil
	}
	return envelope
}

// objectLoop writes the body of a function that reads an object of type t. read and unknown are
// the expressions that read a member into its field, and one without a field.
func (e *emitter) objectLoop(s *source, t *goType, read func(*field) string, unknown string) {
	s.line("return d.ReadObject(%s, func(name []byte) error {", spaced(requiredNames(t)))
	e.members(s, t, read)
	s.line("return %s\n})", unknown)
}

func requiredNames(t *goType) (names []string) {
	for _, f := range t.fields {
		if f.required {
			names = append(names, f.json)
		}
	}
	return names
}

// members writes the switch that reads a member into its field.
func (e *emitter) members(s *source, t *goType, read func(*field) string) {
	s.line("switch string(name) {")
	for _, f := range t.fields {
		s.line("case %q:", f.json)
		if t.kind == kindShape && !f.required {
			s.line("if null, err := d.Absent(); null || err != nil {\nreturn err\n}")
		}
		s.line("return %s", read(f))
	}
	if names := t.envelope(); names != nil {
		s.line("case %s:\nreturn d.SkipValue()", quoted(names))
	}
	s.line("}")
}

// guards returns the members of an object that are in the table guarded.
func (e *emitter) guards(t *goType) (names []string) {
	const before = "2025-06-18" // the examples of that version have such names
	if e.version <= before || t.kind != kindObject {
		return nil
	}
	for _, row := range []string{t.origin, "*"} {
		for _, name := range guarded[row].members {
			if slices.ContainsFunc(t.fields, func(f *field) bool { return f.json == name }) {
				names = append(names, name)
			}
		}
	}
	return names
}

// readField returns the expression that reads a member into its field.
func (e *emitter) readField(f *field) string {
	to := "&v." + f.name
	switch {
	case f.constant && f.typ.kind == refInt:
		return "d.ConstantInt(" + f.typ.constant + ")"
	case f.constant:
		return "d.Constant(" + strconv.Quote(f.typ.constant) + ")"
	case f.fallback != "":
		return "codec.Pointer(" + to + ", d, " + e.reader(f.typ) + ")"
	case f.required && f.typ.kind == refArray:
		return fmt.Sprintf("codec.ListOrNull(%s, d, %d, %s)", to, f.typ.most, e.reader(*f.typ.elem))
	case f.required, f.typ.kind == refAny:
		return e.read(f.typ, to)
	case e.nilable(f.typ):
		return "codec.OrNil(" + to + ", d, " + e.reader(f.typ) + ")"
	}
	return "codec.Optional(" + to + ", d, " + e.reader(f.typ) + ")"
}

// decodes reports whether values of a named type are decoded in place.
func (e *emitter) decodes(r ref) bool {
	k := e.resolve(r).kind
	return k == kindObject || k == kindHand
}

// inPlace returns the expression of the function that decodes or encodes a value in place.
func (e *emitter) inPlace(r ref, what string) string {
	if e.resolve(r).shared {
		return what + r.name
	}
	return "(*" + r.name + ")." + what
}

// call returns the call of a function that walks a value: of a method expression, or of a
// function literal, which has one return.
func call(walk string) string {
	if _, body, ok := strings.Cut(walk, "{ return "); ok {
		return strings.TrimSuffix(body, " }")
	}
	return "d." + strings.TrimPrefix(walk, "(*codec.Decoder).") + "()"
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

// read returns the expression that reads a value into the pointer to. Its value is an error.
func (e *emitter) read(r ref, to string) string {
	with := func(function string, args ...string) string {
		return function + "(" + strings.Join(append([]string{to, "d"}, args...), ", ") + ")"
	}
	switch r.kind {
	case refInt, refNumber:
		if r.bounded() {
			return with(map[refKind]string{refInt: "codec.IntBetween", refNumber: "codec.Between"}[r.kind], r.bounds())
		}
	case refNullable:
		return with("codec.Nullable", e.reader(*r.elem))
	case refShape:
		return with("codec.ReadShape", "check"+upper(r.name))
	case refMap:
		return with("codec.ReadMap", e.reader(*r.elem))
	case refArray:
		return with("codec.ReadList", e.reader(*r.elem))
	case refNamed:
		if t := e.resolve(r); e.decodes(r) && !t.shared {
			return strings.TrimPrefix(to, "&") + ".decode(d)"
		}
	}
	return with(strings.TrimSuffix(e.reader(r), "["+r.name+"]"))
}

// reader returns the expression of a function that reads a value into a pointer.
func (e *emitter) reader(r ref) string {
	simple := map[refKind]string{
		refString: "codec.Str", refBool: "codec.Bool", refInt: "codec.Int", refNumber: "codec.Number",
		refAny: "codec.Any", refJSON: "codec.JSON", refObject: "codec.Object", refMembers: "codec.Members",
	}[r.kind]
	if simple != "" && !r.bounded() {
		return simple
	}
	if r.kind == refNamed {
		switch t := e.resolve(r); t.kind {
		case kindString:
			return "codec.ReadString[" + r.name + "]"
		case kindEnum, kindUnion, kindList, kindMap:
			return "read" + t.name
		}
		return e.inPlace(r, "decode")
	}
	return "func(v *" + r.String() + ", d *codec.Decoder) error { return " + e.read(r, "v") + " }"
}

// walk returns the expression of a function that checks a value without decoding it.
func (e *emitter) walk(r ref) (string, error) {
	switch r.kind {
	case refString:
		if r.constant != "" {
			return "func(d *codec.Decoder) error { return d.Constant(" + strconv.Quote(r.constant) + ") }", nil
		}
		return "(*codec.Decoder).SkipString", nil
	case refObject, refMembers:
		return "(*codec.Decoder).SkipObject", nil
	case refArray, refMap:
		elem, err := e.walk(*r.elem)
		if r.kind == refMap && r.elem.kind == refObject {
			elem = "(*codec.Decoder).SkipSchema"
		}
		how := map[refKind]string{refArray: "Each", refMap: "EachMember"}[r.kind]
		return "func(d *codec.Decoder) error { return d." + how + "(" + elem + ") }", err
	}
	return "", fmt.Errorf("no rule for %s in an object that stays raw", r)
}

func (e *emitter) encoders(s *source) {
	for _, t := range e.own {
		switch t.kind {
		case kindString:
			s.line("func (v %s) encode(e *codec.Encoder) { e.Str(string(v)) }\n", t.name)
		case kindEnum:
			s.line("func (v %s) encode(e *codec.Encoder) { write%s(e, v) }\n", t.name, t.name)
		case kindList, kindMap:
			s.line("func (v %s) encode(e *codec.Encoder) { %s }\n", t.name, e.write(t.content(), "v"))
		case kindObject:
			s.line("func (v *%s) encode(e *codec.Encoder) {", t.name)
			e.objectBody(s, t)
		}
	}
}

// objectBody writes the body of a function that writes the object v.
func (e *emitter) objectBody(s *source, t *goType) {
	var start strings.Builder
	start.WriteString("{")
	comma := ""
	for _, f := range t.fields {
		switch {
		case f.constant && f.typ.kind == refInt:
			start.WriteString(comma + jsonText(f.json) + ":" + f.typ.constant)
		case f.constant:
			start.WriteString(comma + jsonText(f.json) + ":" + jsonText(f.typ.constant))
		default:
			continue
		}
		comma = ","
	}
	s.line("if !e.Begin(v != nil, `%s`) {\nreturn\n}", start.String())
	for _, f := range t.fields {
		if !f.constant {
			e.writeField(s, f)
		}
	}
	known, guards := spaced(memberNames(t)), e.guards(t)
	switch {
	case t.beside != nil:
		s.line("if _, unknown := v.%[1]s.(*Unknown); unknown || v.%[1]s == nil {\ne.Absent()\nreturn\n}", t.beside.name)
		s.line("e.Beside(v.%[1]s.encode, v.%[1]s.extra, %[2]s, %[3]s)\ne.Close('}')\n}\n", t.beside.name, known,
			spaced(guards))
	case t.closed:
		s.line("e.Close('}')\n}\n")
	default:
		if guards != nil {
			s.line("e.Guard(v.Extra, %s)", spaced(guards))
		}
		s.line("e.End(v.Extra, %s)\n}\n", known)
	}
}

// jsonText returns a string as JSON, without the escapes that are only for HTML.
func jsonText(s string) string {
	text, err := formatSchema(s)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// writeField writes the statements that write a field's member.
func (e *emitter) writeField(s *source, f *field) {
	field := "v." + f.name
	switch {
	case f.fallback != "":
		s.line("e.Name(%q)\n%s", f.json, e.write(f.typ, fmt.Sprintf("codec.Or(%s, %s)", field, f.fallback)))
	case f.required:
		s.line("e.Name(%q)\n%s", f.json, e.write(f.typ, field))
	case f.typ.kind == refMembers:
		s.line("e.OptionalMembers(%q, %s)", f.json, field)
	case e.nilable(f.typ):
		s.line("if %s != nil {\ne.Name(%q)\n%s\n}", field, f.json, e.write(f.typ, field))
	case f.typ.kind == refString:
		s.line("e.OptionalStr(%q, %s)", f.json, field)
	case f.typ.kind == refNamed && e.decodes(f.typ):
		s.line("codec.OptionalObject(e, %q, %s, %s)", f.json, field, e.inPlace(f.typ, "encode"))
	default:
		s.line("codec.OptionalValue(e, %q, %s, %s)", f.json, field, e.writer(f.typ))
	}
}

// write returns the statement that writes a value.
func (e *emitter) write(r ref, value string) string {
	simple := map[refKind]string{
		refString: "e.Str", refBool: "e.Bool", refInt: "e.Int", refNumber: "e.Number",
		refAny: "e.Any", refJSON: "e.Any", refObject: "e.Object", refMembers: "e.Members",
	}[r.kind]
	switch {
	case simple != "" && r.bounded():
		return map[refKind]string{refInt: "e.IntBetween", refNumber: "e.Between"}[r.kind] + "(" + value + ", " +
			r.bounds() + ")"
	case simple != "":
		return simple + "(" + value + ")"
	}
	switch r.kind {
	case refNullable:
		return "codec.WriteNullable(e, " + value + ", " + e.writer(*r.elem) + ")"
	case refShape:
		return "codec.WriteShape(e, " + value + ", check" + upper(r.name) + ")"
	case refMap:
		return "codec.WriteMap(e, " + value + ", " + e.writer(*r.elem) + ")"
	case refArray:
		write := "codec.WriteList(e, " + value + ", " + e.writer(*r.elem) + ")"
		if r.elem.kind == refNamed && e.decodes(*r.elem) {
			write = "codec.WriteObjects(e, " + value + ", " + e.inPlace(*r.elem, "encode") + ")"
		}
		if r.most > 0 {
			return fmt.Sprintf("if e.AtMost(%d, len(%s)) {\n%s\n}", r.most, value, write)
		}
		return write
	}
	switch t := e.resolve(r); {
	case t.kind == kindString:
		return "e.Str(string(" + value + "))"
	case t.kind == kindUnion:
		return "writeUnion(e, " + value + ")"
	case t.kind == kindEnum:
		return "write" + t.name + "(e, " + value + ")"
	case t.kind == kindList, t.kind == kindMap, !t.shared:
		return value + ".encode(e)"
	}
	return "encode" + r.name + "(&" + value + ", e)"
}

// writer returns the expression of a function that writes a value.
func (e *emitter) writer(r ref) string {
	body := e.write(r, "v")
	if name, ok := strings.CutSuffix(body, "(v)"); ok && strings.HasPrefix(name, "e.") {
		return "(*codec.Encoder)." + name[2:]
	}
	if name, ok := strings.CutSuffix(body, "(e, v)"); ok {
		return name
	}
	return "func(e *codec.Encoder, v " + r.String() + ") { " + body + " }"
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// marshalers writes the methods of the types for encoding/json, which go-json-experiment/json calls as well.
func (e *emitter) marshalers(s *source) {
	for _, t := range e.own {
		if !slices.Contains([]typeKind{kindObject, kindEnum, kindString, kindList, kindMap}, t.kind) {
			continue
		}
		s.line("// MarshalJSON implements [encoding/json.Marshaler].")
		s.line("func (v %s) MarshalJSON() ([]byte, error) { return marshal(&v) }\n", t.name)
		s.line("// UnmarshalJSON implements [encoding/json.Unmarshaler] as [Decode] does.")
		s.line("func (v *%s) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }\n", t.name)
	}
}
