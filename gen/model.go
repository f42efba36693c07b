package main

// model is what the emitters see of a schema: every Go type the package gets,
// sorted by name, and the methods of the protocol.
type model struct {
	version string // "2025-06-18", from the schema's folder
	digest  string // sha256 of the schema file
	file    string // the schema file, seen from the package's folder
	types   []*goType
	methods []*method
}

// goType is one generated Go type.
type goType struct {
	name   string
	origin string // where in the schema: "CallToolRequest/params"
	doc    string
	kind   typeKind

	fields []*field // kindObject, kindShape; sorted by JSON name, constants included
	values []string // kindEnum

	target string // kindAlias

	member string // kindUnion: the member that tells the arms apart, "" when presence does
	arms   []*arm // kindUnion, in the order they are tried
	first  bool   // kindUnion: not decidable from the value alone, the first arm stands for all
}

type typeKind int

const (
	kindObject typeKind = iota
	kindShape           // an object that stays raw JSON in Go and is only checked
	kindUnion
	kindEnum
	kindString // a string with a name of its own
	kindAlias
	kindHand // written by hand in the package
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
	constant bool // typ.constant is the only value; not a Go field
	restored bool // not in the schema, see lostMeta
}

// ref is the use of a type.
type ref struct {
	kind     refKind
	name     string // refNamed, refShape: the goType
	elem     *ref   // refArray, refMap
	min, max *float64
	constant string
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
)

// method is one request or notification of the protocol.
type method struct {
	name       string // "tools/call"
	goName     string // "ToolsCall"
	definition string // "CallToolRequest"
	params     string // Go type
	result     string // Go type, "" for a notification
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
		return "int64"
	case refNumber:
		return "float64"
	case refAny, refObject, refShape:
		return "json.RawMessage"
	case refMembers:
		return "map[string]json.RawMessage"
	case refArray:
		return "[]" + r.elem.String()
	case refMap:
		return "map[string]" + r.elem.String()
	}
	return r.name
}
