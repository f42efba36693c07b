package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// usage says what a package uses of a schema: methods, and members of definitions. From it the
// package gets plain structs without codecs of their own, for a protocol of which little is used.
type usage struct {
	// Calls are the requests that the package sends, Asks those that it answers: by method, the
	// definitions of the params and of the result, "-" for one that is not used. Notes are the
	// notifications that it reads, by method, with the definition of the params.
	Calls, Asks, Notes map[string]string
	// Types are the Go types. Each is made of sources, a definition or DEFINITION:TAG for an arm of
	// a union; they are merged. The value lists the members: NAME, or with NAME? a pointer, with
	// NAME=raw a value that is read by hand or as one of the Go types that are made of its definition, NAME=any one that is not looked at, NAME=map
	// any object, NAME=string a string that may be something else, NAME=TYPE a certain Go type, each also with [] before it
	// for the elements of a list. -NAME is a member that is known and not used.
	Types map[string]map[string]string
	// Known are Go types of which all members must be named, as in those that Asks read, because
	// they say what an answer is about.
	Known []string
}

// mention is one member in a list of [usage].Types.
type mention struct {
	name, mark       string
	pointer, ignored bool
}

func parseMember(text string) mention {
	m := mention{}
	text, m.mark, _ = strings.Cut(text, "=")
	text, m.ignored = strings.CutPrefix(text, "-")
	m.name, m.pointer = strings.CutSuffix(text, "?")
	return m
}

// lens is the stage that selects the part of a schema that a package uses.
type lens struct {
	usage
	definitions map[string]any
	types       []*goType
	enums       map[string][]string        // by Go name
	tags        map[string]string          // of arms, by Go name
	used        map[string]map[string]bool // the members by definition; those of an arm by DEFINITION:TAG
	whole       map[string]bool            // definitions of which all is used
	objects     map[string]bool            // definitions of which only their being an object is used
	problems    []error                    // what keeps the package from using the schema
}

// flow says where values of a type go.
type flow int

const (
	received flow = iota
	sent
	asked
)

// look makes a lens of the text of a schema.
func (p project) look(text []byte) (*lens, error) {
	words, err := os.ReadFile(p.uses)
	if err != nil {
		return nil, err
	}
	var u usage
	if err := json.Unmarshal(words, &u); err != nil {
		return nil, fmt.Errorf("%s: %w", p.uses, err)
	}
	definitions, err := structure(text)
	if err != nil {
		return nil, err
	}
	return look(u, definitions), nil
}

// look makes a lens. Its problems name each place where uses does not fit the definitions.
func look(u usage, definitions map[string]any) *lens {
	l := &lens{
		usage: u, definitions: definitions,
		enums: map[string][]string{}, tags: map[string]string{}, used: map[string]map[string]bool{}, whole: map[string]bool{}, objects: map[string]bool{},
	}
	done := map[string]bool{}
	for _, root := range l.roots() {
		l.visit(root.name, root.flow, done)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Types)) {
		if !slices.ContainsFunc(l.types, func(t *goType) bool { return t.name == name }) {
			l.problem("type %s is not used by any method", name)
		}
	}
	slices.SortFunc(l.types, func(a, b *goType) int { return strings.Compare(a.name, b.name) })
	return l
}

func (l *lens) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Errorf(format, args...))
}

type root struct {
	name string
	flow flow
}

// The definitions of unions with all methods.
const (
	allCalls = "ClientRequest"
	allAsks  = "ServerRequest"
	allNotes = "ServerNotification"
)

// roots returns the Go types of the methods' params and results.
func (l *lens) roots() (roots []root) {
	add := func(method, definition string, f flow) {
		if definition == "-" {
			return
		}
		name, err := l.typeOf(definition, "")
		if err != nil {
			l.problem("%s: %w", method, err)
			return
		}
		roots = append(roots, root{name, f})
	}
	for _, side := range []struct {
		union          string
		methods        map[string]string
		params, result flow
	}{{allCalls, l.Calls, sent, received}, {allAsks, l.Asks, asked, sent}, {allNotes, l.Notes, received, received}} {
		known := methodsOf(l.definitions, side.union)
		for _, method := range slices.Sorted(maps.Keys(side.methods)) {
			params, result, _ := strings.Cut(side.methods[method], " ")
			is, ok := known[method]
			switch {
			case !ok:
				l.problem("%s: the method is gone", method)
				continue
			case params != "-" && is != params:
				l.problem("%s: its params are %s, not %s", method, is, params)
				continue
			}
			add(method, params, side.params)
			if result != "" {
				add(method, result, side.result)
			}
		}
	}
	return roots
}

// methodsOf returns the definitions of the params by method.
func methodsOf(definitions map[string]any, union string) map[string]string {
	methods := map[string]string{}
	for _, arm := range listOf(definitions[union], "oneOf") {
		_, params := unwrap(definitions, memberOf(arm, "params"))
		for _, method := range enumOf(memberOf(arm, "method")) {
			methods[method] = params
		}
	}
	return methods
}

// typeOf returns the Go type that is made of a definition: the wanted one, or the only one.
func (l *lens) typeOf(definition, wanted string) (string, error) {
	found := l.views(definition, wanted)
	if len(found) == 1 {
		return found[0], nil
	}
	return "", fmt.Errorf("one Go type for %s is needed, there are %q", definition, found)
}

// views returns the Go types that are made of a definition, or only the wanted one.
func (l *lens) views(definition, wanted string) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(l.Types)) {
		for source := range l.Types[name] {
			if d, _, _ := strings.Cut(source, ":"); d == definition && (wanted == "" || wanted == name) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// visit makes a Go type and those that its members refer to.
func (l *lens) visit(name string, f flow, done map[string]bool) {
	if slices.Contains(l.Known, name) {
		f = asked
	}
	if key := fmt.Sprint(name, f); done[key] {
		return
	} else {
		done[key] = true
	}
	sources := slices.Sorted(maps.Keys(l.Types[name]))
	t := &goType{name: name, origin: strings.Join(sources, ", "), kind: kindPlain, closed: f != asked}
	have := map[string]int{}
	for _, source := range sources {
		l.source(t, source, f, done, have)
	}
	for _, field := range t.fields {
		field.required = field.required && have[field.json] == len(sources)
	}
	slices.SortFunc(t.fields, func(a, b *field) int { return strings.Compare(a.json, b.json) })
	if i := slices.IndexFunc(l.types, func(old *goType) bool { return old.name == name }); i < 0 {
		l.types = append(l.types, t)
	} else {
		l.types[i].closed = l.types[i].closed && t.closed
	}
}

// source adds the members of a source to a Go type. It counts in have how many sources have a member.
func (l *lens) source(t *goType, source string, f flow, done map[string]bool, have map[string]int) {
	definition, tag, isArm := strings.Cut(source, ":")
	node := l.definitions[definition]
	if node == nil {
		l.problem("%s: the definition is gone", definition)
		return
	}
	by, members, required := "", map[string]any{}, []string{}
	objects, owner := []any{node}, map[string]string{}
	if isArm {
		var arm any
		if by, arm = armOf(node, tag); arm == nil {
			l.problem("%s: the arm is gone", source)
			return
		}
		objects = append(objects, arm)
		l.tags[nameOr(definition, "")+nameOr(tag, "")] = tag
	} else if len(listOf(node, "oneOf")) > 0 && len(objectMembers(node)) == 0 {
		l.problem("%s: it is a choice now", source)
		return
	}
	for i, o := range objects {
		for name, m := range objectMembers(o) {
			members[name], owner[name] = m, []string{definition, source}[i]
		}
		required = append(required, stringsOf(o, "required")...)
		for _, beside := range listOf(o, "anyOf") {
			for name, m := range objectMembers(beside) {
				members[name], owner[name] = m, []string{definition, source}[i]
			}
		}
	}
	if isArm {
		required = slices.DeleteFunc(required, func(s string) bool { return s == by })
		l.field(t, &field{json: by, typ: ref{kind: refString}, required: true}, have)
	}
	named := map[string]bool{by: true}
	for word := range strings.FieldsSeq(l.Types[t.name][source]) {
		m := parseMember(word)
		named[m.name] = true
		place := source + "/" + m.name
		node, ok := members[m.name]
		if !ok {
			l.problem("%s: the member is gone", place)
			continue
		}
		l.mark(owner[m.name], m.name)
		add := &field{json: m.name, typ: ref{kind: refAny}, required: slices.Contains(required, m.name)}
		if m.ignored {
			add.doc = notUsed
		} else {
			typ, null, err := l.use(node, m.mark, f, done)
			if err != nil {
				l.problem("%s: %w", place, err)
				continue
			}
			add.typ, add.required = typ, add.required && !null
		}
		if m.pointer {
			inner := add.typ
			add.typ = ref{kind: refNullable, elem: &inner}
		}
		l.field(t, add, have)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch {
		case named[name]:
		case f == asked:
			l.problem("%s/%s: a new member of a request: does it change what an approval means?", source, name)
		case f == sent && slices.Contains(required, name):
			l.problem("%s/%s: a required member that is not sent", source, name)
		}
	}
}

// mark records that a member is used.
func (l *lens) mark(source, name string) {
	if l.used[source] == nil {
		l.used[source] = map[string]bool{}
	}
	l.used[source][name] = true
}

// notUsed is the comment of a member that is known and not used.
const notUsed = "not used"

// field adds a member to a Go type, or merges it with that of another source.
func (l *lens) field(t *goType, f *field, have map[string]int) {
	f.name = nameOr(f.json, "Member")
	have[f.json]++
	for _, old := range t.fields {
		if old.json == f.json {
			if old.typ.String() != f.typ.String() {
				l.problem("%s/%s: its sources have the types %s and %s", t.name, f.json, old.typ, f.typ)
			}
			old.required = old.required && f.required
			if f.doc == "" {
				old.doc = ""
			}
			return
		}
	}
	t.fields = append(t.fields, f)
}

// use returns the Go type of a member, and whether null is one of its values.
func (l *lens) use(node any, mark string, f flow, done map[string]bool) (typ ref, null bool, err error) {
	node, null, definition := plain(l.definitions, node)
	schema, _ := node.(map[string]any)
	kind, _ := schema["type"].(string)
	values := enumOf(node)
	if len(values) > 0 && definition != "" {
		l.enums[nameOr(definition, "")] = values
	}
	list, isList := strings.CutPrefix(mark, "[]")
	simple, isSimple := map[string]refKind{"string": refString, "integer": refInt, "number": refNumber, "boolean": refBool}[kind]
	more, isMap := schema["additionalProperties"]
	switch {
	case isList && kind != "array":
		err = errors.New("it is not a list")
	case isList:
		return l.elements(refArray, schema["items"], list, null, f, done)
	case mark == "any":
		return ref{kind: refAny}, null, nil
	case mark == "raw":
		views := l.views(definition, "")
		for _, name := range views {
			l.visit(name, f, done)
		}
		if len(views) == 0 {
			l.keep(definition, node)
		}
		return ref{kind: refAny}, null, nil
	case mark == "map" && kind != "object":
		err = errors.New("it is not an object")
	case mark == "map":
		l.objects[definition] = definition != ""
		return ref{kind: refMembers}, null, nil
	case mark == "string":
		l.keep(definition, node)
		if kind != "string" && len(values) == 0 {
			err = errors.New("it is never a string")
		}
		return ref{kind: refString}, null, err
	case mark != "":
		return l.named(definition, mark, null, f, done)
	case len(values) > 0 && len(values) == len(armsOf(node)):
		l.keep(definition, node)
		return ref{kind: refString}, null, nil
	case isSimple || kind == "array":
		if definition != "" {
			l.whole[definition] = true
		}
		if isSimple {
			return ref{kind: simple}, null, nil
		}
		return l.elements(refArray, schema["items"], "", null, f, done)
	case isMap && len(objectMembers(node)) == 0 && kind == "object":
		return l.elements(refMap, more, "", null, f, done)
	case definition != "":
		return l.named(definition, "", null, f, done)
	case kind == "" && len(listOf(node, "oneOf"))+len(listOf(node, "anyOf")) == 0:
		return ref{kind: refAny}, null, nil // any value
	default:
		err = errors.New("it is a choice or an object without a name")
	}
	return typ, null, err
}

// elements returns the Go type of a list or a map with elements of a schema.
func (l *lens) elements(kind refKind, elem any, mark string, null bool, f flow, done map[string]bool) (ref, bool, error) {
	of, nullable, err := l.use(elem, mark, f, done)
	if kind == refMap && nullable {
		inner := of
		of = ref{kind: refNullable, elem: &inner}
	}
	return ref{kind: kind, elem: &of}, null, err
}

// named returns the Go type of a definition.
func (l *lens) named(definition, wanted string, null bool, f flow, done map[string]bool) (ref, bool, error) {
	name, err := l.typeOf(definition, wanted)
	if err == nil {
		l.visit(name, f, done)
	}
	return ref{kind: refNamed, name: name}, null, err
}

// keep records that all of a definition is used, and what it refers to.
func (l *lens) keep(definition string, node any) {
	if definition != "" {
		if l.whole[definition] {
			return
		}
		l.whole[definition] = true
	}
	for _, ref := range refsOf(node) {
		l.keep(ref, l.definitions[ref])
	}
}
