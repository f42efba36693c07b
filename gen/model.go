package main

import "fmt"

// model is the emitters' input: every Go type of the package, sorted by name, and the
// methods of the protocol.
type model struct {
	version string   // "2025-06-18", from the schema's folder
	from    string   // what the files say that they are made from
	files   []string // the schema file and its extensions, relative to the package's folder
	types   []*goType
	methods []*method

	extension map[string]bool // the definitions that extensions add
}

// goType is one generated Go type.
type goType struct {
	name   string
	origin string // the place in the schema: "CallToolRequest/params"
	doc    string
	kind   typeKind

	fields []*field // kindObject, kindShape; sorted by JSON name, constants included
	closed bool     // kindObject: no members but fields
	beside *field   // kindObject: a union whose members are mixed with fields
	enum   enum     // kindEnum
	elem   ref      // kindList, kindMap
	max    int      // kindList: the maximum number of elements, 0 for any

	target string // kindAlias

	union union // kindUnion

	shared bool // an alias of the base package's type
}

// enum is the strings of a [goType] that is a list of them, and their Go constants.
type enum struct{ values, names []string }

// union is the alternatives of a [goType], and how a decoder chooses one.
type union struct {
	member   string   // the member that selects the arm, "" if present members do
	ifAbsent string   // the value that an absent member means, "" if it is required
	arms     []*arm   // in the order they are tried
	lists    []string // arms that are lists
	loose    bool     // member may have any value
}

type typeKind int

const (
	kindObject typeKind = iota
	kindShape           // an object that stays raw JSON in Go and is only checked
	kindUnion
	kindEnum
	kindString // a named string type
	kindAlias
	kindMembers // any object, as a map of raw members
	kindJSON    // any JSON value but null and fractions, kept raw
	kindList
	kindMap
	kindHand // written by hand in the base package
)

// arm is one alternative of a union. It is chosen if the union's member has one of tags
// (in a union with a member) and every member in present is there.
type arm struct {
	name    string
	tags    []string
	not     []string // tags that other arms have
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
	common   string // the comment of members that mean the same everywhere
	fallback string // the Go value that is written for a nil pointer, "" if the member is omitted
}

// ref is the use of a type.
type ref struct {
	kind     refKind
	name     string   // refNamed, refShape: the goType; refMembers, refJSON: its alias, if any
	elem     *ref     // refArray, refMap, refNullable
	min, max *float64 // refInt, refNumber
	most     int      // refArray: the maximum number of elements, 0 for any
	constant string   // the JSON text of a number, or a string without its quotes
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
	refNullable // null is a value and differs from absence
	refJSON     // kindJSON
)

// method is one request or notification of the protocol.
type method struct {
	name     string // "tools/call"
	goName   string // "ToolsCall"
	params   string // Go type
	result   string // Go type, "" for a notification
	union    bool   // result is a union
	required bool   // params must be sent
	client   bool   // the client sends it
	server   bool   // the server sends it
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

// form returns a text that is equal for refs of the same meaning, whatever their names.
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
