package main

import (
	"maps"
	"slices"
	"strings"
)

// plainType writes a struct that json/v2 reads and writes by reflection: codecs of their own would
// be megabytes of program for a connection that carries few messages.
func (e *emitter) plainType(s *source, t *goType) {
	s.line("// %s is made of %s.\ntype %s struct {", t.name, t.origin, t.name)
	for _, f := range t.fields {
		typ, option, note := f.typ.String(), "", ""
		if !f.required {
			option = ",omitzero"
			if f.typ.kind == refNamed {
				typ = "*" + typ
			}
		}
		if f.doc != "" {
			note = " // " + f.doc
		}
		s.line("%s %s `json:\"%s%s\"`%s", f.name, typ, f.json, option, note)
	}
	if !t.closed {
		s.line("\n// Unknown are the members that the schema does not have, as an object.\nUnknown jsontext.Value `json:\",embed\"`")
	}
	s.line("}\n")
}

// names writes the methods, tags and values that are used of a schema.
func (e *emitter) names(s *source) error {
	l := e.lens
	constants := func(doc string, values map[string]string) {
		if len(values) == 0 {
			return
		}
		s.line("// %s\nconst (", doc)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			s.line("%s = %q", name, values[name])
		}
		s.line(")\n")
	}
	named := func(prefix string, all []string) map[string]string {
		values := map[string]string{}
		for _, v := range all {
			values[prefix+nameOr(v, "Empty")] = v
		}
		return values
	}
	constants("The requests that are sent.", named("Call", slices.Collect(maps.Keys(l.Calls))))
	constants("The requests that are answered.", named("Ask", slices.Collect(maps.Keys(l.Asks))))
	constants("The notifications that are read.", named("Note", slices.Collect(maps.Keys(l.Notes))))
	constants("The tags of the arms that are used.", l.tags)
	for _, name := range slices.Sorted(maps.Keys(l.enums)) {
		constants("The values of "+name+"; newer versions have others.", named(name, l.enums[name]))
	}
	// These functions tell methods that are used, or that the schema has, from others.
	known := func(name, doc string, methods map[string]string) {
		s.line("// %s reports whether %s.\nfunc %s(method string) bool {\nswitch method {", name, doc, name)
		s.line("case %s:\nreturn true\n}\nreturn false\n}\n", strings.ReplaceAll(quoted(slices.Sorted(maps.Keys(methods))), ", ", ",\n"))
	}
	known("UsesNote", "a notification is read", l.Notes)
	known("KnownNote", "the schema has a notification", methodsOf(l.definitions, allNotes))
	known("KnownAsk", "the schema has a request to the client", methodsOf(l.definitions, allAsks))
	return nil
}
