package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// methodValues writes one value for each request and notification, and the table of all.
func (e *emitter) methodValues(s *source) error {
	s.line("// ProtocolVersion is the version of the protocol that this package's types follow.")
	s.line("const ProtocolVersion = %q\n", e.version)
	if err := e.constants(s); err != nil {
		return err
	}
	base := ""
	if e.base != "" {
		base = "mcptypes."
	}
	var decoders strings.Builder // functions with names, because a closure needs init, which links the decoders into every program
	for _, kind := range []string{"requests", "notifications"} {
		s.line("// The %s of the protocol.\nvar (", kind)
		for _, m := range e.model.methods {
			if (m.result == "") != (kind == "notifications") {
				continue
			}
			s.comment(m.goName + " is " + m.name + ", " + m.senders() + ": see [" + m.definition + "].")
			switch {
			case m.result == "":
				s.line("%s = %sNewNotification[%s](%q, %v)", m.goName, base, m.params, m.name, m.required)
			case m.union:
				s.line("%s = %sNewUnionMethod[%s, %s](%q, %v, decode%s)", m.goName, base, m.params, m.result, m.name, m.required, m.result)
				fmt.Fprintf(&decoders, "func decode%s(b []byte, v any) error {\nreturn read(b, false, codec.Into(v.(*%[1]s), read%[1]s))\n}\n\n", m.result)
			default:
				s.line("%s = %sNewMethod[%s, %s](%q, %v)", m.goName, base, m.params, m.result, m.name, m.required)
			}
		}
		s.line(")\n")
	}
	s.WriteString(decoders.String())
	s.line("// Methods returns the table of the protocol's methods, sorted by name.")
	s.line("func Methods() []MethodInfo {\nreturn []MethodInfo{")
	for _, m := range e.model.methods {
		s.line("{Name: %q, Params: %q, Result: %q, FromClient: %v, FromServer: %v},",
			m.name, m.params, m.result, m.client, m.server)
	}
	s.line("}\n}\n")
	e.paramsDecoder(s)
	for _, u := range []string{"ClientResult", "ServerResult"} {
		if t := e.byName[u]; t != nil && t.kind == kindUnion {
			if err := e.resultDecoder(s, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// paramsDecoder writes the function that decodes the params of a given method.
func (e *emitter) paramsDecoder(s *source) {
	s.line("// DecodeParams decodes raw as the params of method, a request or a notification; raw is empty if")
	s.line("// there are none. The row of the method in [Methods] names the type that the result points to. The")
	s.line("// error of wrong params wraps a [*DecodeError].")
	s.line("func DecodeParams(method string, raw []byte) (any, error) {\nswitch method {")
	for _, m := range e.model.methods {
		s.line("case %q:\nreturn anyParams(%s.DecodeParams(raw))", m.name, m.goName)
	}
	s.line("}\nreturn nil, fmt.Errorf(\"%s: no params type for the method %%q\", method)\n}\n", e.pkg)
	s.line("func anyParams[P any](params *P, err error) (any, error) {\nif err != nil {\nreturn nil, err\n}\nreturn params, nil\n}\n")
}

// resultDecoder writes the function that decodes the result of a given method.
func (e *emitter) resultDecoder(s *source, t *goType) error {
	fromClient := t.name == "ServerResult" // the other side asked
	s.line("// Decode%s decodes b as the result of method. The row of the method in", t.name)
	s.line("// [Methods] names the type of the result.")
	s.line("func Decode%s(method string, b []byte) (%s, error) {\nvar result interface {\n%s\ndecodable\n}\nswitch method {", t.name, t.name, t.name)
	for _, m := range e.model.methods {
		if m.result == "" || fromClient && !m.client || !fromClient && !m.server {
			continue
		}
		s.line("case %s:", strconv.Quote(m.name))
		if !m.union {
			s.line("result = new(%s)", m.result)
			continue
		}
		for _, a := range e.byName[m.result].union.arms {
			if !slices.ContainsFunc(t.union.arms, func(b *arm) bool { return a.name == b.name }) {
				return fmt.Errorf("%s: %s, a result of %s, is not an arm of it", t.origin, a.name, m.name)
			}
		}
		s.line("var any %s\nif err := Decode(b, &any); err != nil {\nreturn nil, err\n}\nreturn any.(%s), nil", m.result, t.name)
	}
	s.line("default:\nreturn nil, fmt.Errorf(\"%s: no result type for the method %%q\", method)\n}", e.pkg)
	s.line("if err := Decode(b, result); err != nil {\nreturn nil, err\n}\nreturn result, nil\n}\n")
	return nil
}

// constants writes the keys of _meta and the codes of errors.
func (e *emitter) constants(s *source) error {
	var keys, codes source
	done := make(map[string]bool)
	for _, t := range e.model.types {
		for _, f := range t.fields {
			if strings.Contains(f.json, "/") && !done[f.json] {
				done[f.json] = true
				keys.line("// Meta%s is the key of %s.%s.\nMeta%s = %q", f.name, t.name, f.name, f.name, f.json)
			}
			if f.json == "code" && f.constant && f.typ.kind == refInt {
				name := "Code" + strings.TrimSuffix(t.name, "Error")
				codes.line("// %s is the code of [%s].\n%s = %s", name, t.name, name, f.typ.constant)
			}
		}
	}
	if keys.Len() > 0 {
		s.line("// The keys of _meta that the protocol defines.\nconst (\n%s)\n", keys.String())
	}
	if codes.Len() > 0 {
		s.line("// The codes of errors that the protocol defines.\nconst (\n%s)\n", codes.String())
	}
	return nil
}

func (m *method) senders() string {
	switch {
	case m.client && m.server:
		return "sent by either side"
	case m.client:
		return "sent by the client"
	}
	return "sent by the server"
}
