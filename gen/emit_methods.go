package main

import (
	"fmt"
	"strings"
)

// methodValues writes one value for each request and notification, and the table of all.
func (e *emitter) methodValues(s *source) {
	s.line("// ProtocolVersion is the version of the protocol that this package's types follow.")
	s.line("const ProtocolVersion = %q\n", e.version)
	e.constants(s)
	base := ""
	if e.base != "" {
		base = "mcptypes."
	}
	// functions with names, because a closure needs init, which links the decoders into every program
	var decoders strings.Builder
	for _, kind := range []string{"requests", "notifications"} {
		s.line("// The %s of the protocol.\nvar (", kind)
		for _, m := range e.model.methods {
			if (m.result == "") != (kind == "notifications") {
				continue
			}
			s.comment(m.goName + " is " + m.name + ", " + m.senders() + ".")
			switch {
			case m.result == "":
				s.line("%s = %sNewNotification[%s](%q, %v)", m.goName, base, m.params, m.name, m.required)
			case m.union:
				s.line("%s = %sNewUnionMethod[%s, %s](%q, %v, decode%s)", m.goName, base, m.params, m.result, m.name,
					m.required, m.result)
				fmt.Fprintf(&decoders, "func decode%s(b []byte, v any) error {\nreturn read(b, false, "+
					"codec.Into(v.(*%[1]s), read%[1]s))\n}\n\n", m.result)
			default:
				s.line("%s = %sNewMethod[%s, %s](%q, %v)", m.goName, base, m.params, m.result, m.name, m.required)
			}
		}
		s.line(")\n")
	}
	s.WriteString(decoders.String())
}

// constants writes the keys of _meta and the codes of errors.
func (e *emitter) constants(s *source) {
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
