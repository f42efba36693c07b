package main

import (
	"slices"
	"strings"
)

func (e *emitter) unions(s *source) {
	for _, t := range e.model.types {
		if t.kind != kindUnion {
			continue
		}
		s.comment(e.describe(t) + "\n\nIt is one of " + armNames(t) + ".")
		beside := slices.ContainsFunc(e.model.types,
			func(o *goType) bool { return o.beside != nil && e.resolve(o.beside.typ) == t })
		s.line("type %s interface {\nencodable\nis%s()", t.name, t.name)
		if beside {
			s.line("extra() map[string]json.RawMessage")
		}
		s.line("}\n")
		seen := make(map[string]bool)
		for _, a := range t.union.arms {
			if !seen[a.name] {
				s.line("func (*%s) is%s() {}", a.name, t.name)
				if beside {
					s.line("func (v *%s) extra() map[string]json.RawMessage { return v.Extra }", a.name)
				}
			}
			seen[a.name] = true
		}
		for _, list := range t.union.lists {
			s.line("func (%s) is%s() {}", list, t.name)
		}
		if hasUnknown(t) {
			s.line("func (*Unknown) is%s() {}", t.name)
		}
		if beside {
			s.line("func (*Unknown) extra() map[string]json.RawMessage { return nil }")
		}
		s.line("")
		e.unionReader(s, t)
	}
	e.target(s)
}

// target writes the function that decodes types without a decode method.
func (e *emitter) target(s *source) {
	s.line("// target returns the function that reads into v, if its type has no decode method.")
	s.line("func target(v any) func(*codec.Decoder) error {\nswitch v := v.(type) {")
	for _, t := range e.model.types {
		switch {
		case t.kind == kindUnion, t.shared && t.kind == kindEnum:
			s.line("case *%s:\nreturn codec.Into(v, read%s)", t.name, t.name)
		case t.shared && t.kind == kindString:
			s.line("case *%s:\nreturn codec.Into(v, codec.ReadString[%s])", t.name, t.name)
		case t.shared:
			s.line("case *%s:\nreturn codec.Into(v, decode%s)", t.name, t.name)
		}
	}
	s.line("}\nreturn nil\n}\n")
}

// hasUnknown reports whether a union also accepts values that match no arm.
func hasUnknown(t *goType) bool { return t.union.member != "" && !t.union.loose }

func armNames(t *goType) string {
	var names []string
	for _, a := range t.union.arms {
		if name := "*[" + a.name + "]"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, list := range t.union.lists {
		names = append(names, "["+list+"]")
	}
	text := strings.Join(names, ", ")
	if hasUnknown(t) {
		text += "; or *[Unknown] if the member " + t.union.member + " has the value of none of them"
	}
	return text
}

func (e *emitter) unionReader(s *source, t *goType) {
	s.line("func read%s(v *%s, d *codec.Decoder) error {", t.name, t.name)
	for _, list := range t.union.lists {
		s.line("if d.IsList() {")
		s.line("var list %s\nif err := list.decode(d); err != nil {\nreturn err\n}\n*v = list\nreturn nil", list)
		s.line("}")
	}
	switch {
	case t.union.member == "" || t.union.loose:
		s.line("return codec.Untagged(v, d, %q, []codec.Shape{", t.union.member)
		for _, a := range t.union.arms {
			s.line("%s,", e.shape(a))
		}
		s.line("}, arm%s)\n}\n", t.name)
		s.line("func arm%s(v *%s, d *codec.Decoder, n int) error {", t.name, t.name)
		e.armSwitch(s, t.union.arms)
		s.line("}\n")
	case t.union.ifAbsent != "":
		s.line("return codec.TaggedOr(v, d, %q, []codec.Shape{", t.union.member)
		for _, last := range []bool{false, true} {
			for _, a := range t.union.arms {
				if last == (a.tags[0] == t.union.ifAbsent) {
					s.line("%s,", e.shape(&arm{name: a.name, tags: a.tags}))
				}
			}
		}
		s.line("}, arm%s)\n}\n", t.name)
		e.taggedReader(s, t)
	default:
		s.line("return codec.Tagged(v, d, %q, arm%s)\n}\n", t.union.member, t.name)
		e.taggedReader(s, t)
	}
}

// readArm writes the statements that read an arm of a union.
func readArm(s *source, name string) {
	s.line("arm := new(%s)\n*v = arm\nreturn arm.decode(d)", name)
}

// shape returns the codec.Shape that an arm is chosen by.
func (e *emitter) shape(a *arm) string {
	var required, optional []string
	for _, f := range e.byName[a.name].fields {
		if f.required {
			required = append(required, f.json)
		} else {
			optional = append(optional, f.json)
		}
		within := func(p string) bool { return strings.HasPrefix(p, f.json+"/") }
		if slices.ContainsFunc(a.present, within) {
			for _, inner := range e.resolve(f.typ).fields {
				if inner.required {
					required = append(required, f.json+"/"+inner.json)
				}
			}
		}
	}
	var parts []string
	if len(a.tags) > 0 {
		parts = append(parts, "Tag: "+quoted(a.tags))
	}
	for _, list := range []struct {
		name  string
		names []string
	}{{"Not", a.not}, {"Present", a.present}, {"Required", required}, {"Optional", optional}} {
		if len(list.names) > 0 {
			parts = append(parts, list.name+": "+spaced(list.names))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// taggedReader writes the function that chooses an arm by the constant, and among arms with
// the same constant by the members that are present.
func (e *emitter) taggedReader(s *source, t *goType) {
	s.line("func arm%s(v *%s, d *codec.Decoder, tag []byte) error {\nswitch string(tag) {", t.name, t.name)
	done := make(map[string]bool)
	for _, a := range t.union.arms {
		for _, tag := range a.tags {
			if done[tag] {
				continue
			}
			done[tag] = true
			s.line("case %q:", tag)
			var rivals []*arm // those with marking members come first
			for _, r := range t.union.arms {
				if slices.Contains(r.tags, tag) {
					rivals = append(rivals, r)
				}
			}
			if len(rivals) == 1 {
				readArm(s, a.name)
				continue
			}
			s.line("return codec.Untagged(v, d, \"\", []codec.Shape{")
			for _, r := range rivals {
				s.line("%s,", e.shape(&arm{name: r.name, present: r.present}))
			}
			s.line("}, func(v *%s, d *codec.Decoder, n int) error {", t.name)
			e.armSwitch(s, rivals)
			s.line("})")
		}
	}
	s.line("}\narm := new(Unknown)\n*v = arm\nreturn d.UnknownArm(&arm.Tag, &arm.Raw, %q, tag)\n}\n", t.union.member)
}

// armSwitch writes the body of a function that reads the arm with the number n.
func (e *emitter) armSwitch(s *source, arms []*arm) {
	s.line("switch n {")
	for i, a := range arms {
		if i < len(arms)-1 {
			s.line("case %d:", i)
		} else {
			s.line("}")
		}
		readArm(s, a.name)
	}
}
