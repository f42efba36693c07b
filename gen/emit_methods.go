package main

import "strconv"

// methodValues writes one value per request and notification, and the table of
// them all.
func (e *emitter) methodValues(s *source) error {
	s.line("// ProtocolVersion is the version of the protocol that this package's types follow.")
	s.line("const ProtocolVersion = %q\n", e.version)
	for _, kind := range []string{"requests", "notifications"} {
		s.line("// The %s of the protocol.\nvar (", kind)
		for _, m := range e.model.methods {
			if (m.result == "") != (kind == "notifications") {
				continue
			}
			s.comment(m.goName + " is " + m.name + ", " + m.senders() + ": see [" + m.definition + "].")
			if m.result == "" {
				s.line("%s = NotificationMethod[%s]{name: %q, required: %v}", m.goName, m.params, m.name, m.required)
			} else {
				s.line("%s = Method[%s, %s]{name: %q, required: %v}", m.goName, m.params, m.result, m.name, m.required)
			}
		}
		s.line(")\n")
	}
	s.line("// Methods returns the table of the protocol's methods, sorted by name.")
	s.line("func Methods() []MethodInfo {\nreturn []MethodInfo{")
	for _, m := range e.model.methods {
		s.line("{Name: %q, Params: %q, Result: %q, FromClient: %v, FromServer: %v},",
			m.name, m.params, m.result, m.client, m.server)
	}
	s.line("}\n}\n")
	for _, u := range []string{"ClientResult", "ServerResult"} {
		if e.byName[u] == nil {
			continue
		}
		fromClient := u == "ServerResult" // the other side asked
		s.line("// Decode%s decodes b as the result of method, of the type that the", u)
		s.line("// method's row in the table names.")
		s.line("func Decode%s(method string, b []byte) (%s, error) {\nvar result interface {\n%s\ndecodable\n}\nswitch method {", u, u, u)
		for _, m := range e.model.methods {
			if m.result != "" && (fromClient && m.client || !fromClient && m.server) {
				s.line("case %s:\nresult = new(%s)", strconv.Quote(m.name), m.result)
			}
		}
		s.line("default:\nreturn nil, errMethod(method)\n}")
		s.line("if err := Decode(b, result); err != nil {\nreturn nil, err\n}\nreturn result, nil\n}\n")
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
