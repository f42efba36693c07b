package main

import "fmt"

// model is what the emitters see of a schema: every Go type the package gets,
// sorted by name, and the methods of the protocol.
type model struct {
	version string   // "2025-06-18", from the schema's folder
	digest  string   // sha256 of the schema file
	files   []string // the schema file and those of extensions, seen from the package's folder
	types   []*goType
	methods []*method

	extension map[string]bool // the definitions that extensions add
}

// goType is one generated Go type.
type goType struct {
	name   string
	origin string // where in the schema: "CallToolRequest/params"
	doc    string
	kind   typeKind

	fields []*field // kindObject, kindShape; sorted by JSON name, constants included
	closed bool     // kindObject: without any other members
	beside *field   // kindObject: a union whose members are mixed with fields
	values []string // kindEnum
	elem   ref      // kindList, kindMap
	max    int      // kindList: the most elements, 0 for any number

	target string // kindAlias

	member   string   // kindUnion: the member that selects the arm, "" when presence does
	ifAbsent string   // kindUnion: what member stands for where it is absent, "" when it is required
	arms     []*arm   // kindUnion, in the order they are tried
	lists    []string // kindUnion: arms that are lists
	first    bool     // kindUnion: not decidable from the value alone, the first arm stands for all
	loose    bool     // kindUnion: member is only looked at, and may be anything

	shared bool // the same type as that of the base package
}

type typeKind int

const (
	kindObject typeKind = iota
	kindShape           // an object that stays raw JSON in Go and is only checked
	kindUnion
	kindEnum
	kindString // a string with a name of its own
	kindAlias
	kindMembers // any object, as a map of raw members
	kindJSON    // any JSON value but null and fractions, kept raw
	kindList
	kindMap
	kindHand // written by hand in the base package
)

// arm is one alternative of a union: chosen when the union's member has one of
// tags (if the union has a member) and every name in present is there.
type arm struct {
	name    string
	tags    []string
	present []string
}

// field is one member of an object.
type field struct {
	json     string
	name     string // Go
	doc      string
	typ      ref
	required bool
	constant bool   // typ.constant is the only value; not a Go field
	restored bool   // not in the schema, see lostMeta
	fallback string // what is written for a nil pointer, "" when the member is left out
}

// ref is the use of a type.
type ref struct {
	kind     refKind
	name     string   // refNamed, refShape: the goType; refMembers, refJSON: its alias, if it has one
	elem     *ref     // refArray, refMap, refNullable
	min, max *float64 // refInt, refNumber
	most     int      // refArray: the most elements, 0 for any number
	constant string   // as JSON has it, for a number; without quotes, for a string
}

type refKind int

const (
	refString refKind = iota
	refBool
	refInt
	refNumber
	refAny     // any JSON value, kept raw
	refObject  // any JSON object, kept raw
	refMembers // any JSON object, as a map of raw members
	refShape   // an object of a known shape, kept raw
	refNamed
	refArray
	refMap
	refNullable // null is a value, apart from absence
	refJSON     // kindJSON
)

// method is one request or notification of the protocol.
type method struct {
	name       string // "tools/call"
	goName     string // "ToolsCall"
	definition string // "CallToolRequest"
	params     string // Go type
	result     string // Go type, "" for a notification
	union      bool   // result is a union
	required   bool   // params must be sent
	client     bool   // the client sends it
	server     bool   // the server sends it
	doc        string
}

// String returns the Go type of a required use.
func (r ref) String() string {
	switch r.kind {
	case refString:
		if r.constant != "" {
			return "string constant " + r.constant
		}
		return "string"
	case refBool:
		return "bool"
	case refInt:
		if r.constant != "" {
			return "integer constant " + r.constant
		}
		return "int64"
	case refNumber:
		return "float64"
	case refAny, refObject, refShape:
		return "json.RawMessage"
	case refMembers:
		if r.name != "" {
			return r.name
		}
		return "map[string]json.RawMessage"
	case refNullable:
		return "*" + r.elem.String()
	case refArray:
		return "[]" + r.elem.String()
	case refMap:
		return "map[string]" + r.elem.String()
	}
	return r.name
}

// form returns what refs of one meaning share, whatever their names.
func (r ref) form() string {
	text := r.String()
	if r.kind == refMembers {
		text = "members"
	}
	for _, bound := range []*float64{r.min, r.max} {
		if bound != nil {
			text += fmt.Sprintf(" %v", *bound)
		}
	}
	return fmt.Sprintf("%d %s %d", r.kind, text, r.most)
}

// byName returns the model's types by their names.
func (m *model) byName() map[string]*goType {
	types := make(map[string]*goType)
	for _, t := range m.types {
		types[t.name] = t
	}
	return types
}
