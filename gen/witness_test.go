package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atombender/go-jsonschema/pkg/generator"
	"github.com/atombender/go-jsonschema/pkg/schemas"
	"github.com/google/go-cmp/cmp"
)

// member holds the facts about an object's member that both generators express.
type member struct {
	Optional bool
	Scalar   string // "string", "int", "float64" or "bool"; "" for anything else
}

// TestWitness compares the objects and enums with those of go-jsonschema's own generator,
// which shares only the parser with ours.
func TestWitness(t *testing.T) {
	objects, enums := witness(t)
	m := readModel(t, packages[0].project)
	compared := 0
	for _, typ := range m.types {
		name := placeName(t, typ.origin)
		switch typ.kind {
		case kindObject, kindShape:
			compared++
			if diff := cmp.Diff(objects[name], membersOf(m, typ)); diff != "" {
				t.Errorf("%s (-witness +ours)\n%s", name, diff)
			}
			delete(objects, name)
		case kindEnum:
			compared++
			if diff := cmp.Diff(enums[name], slices.Sorted(slices.Values(typ.enum.values))); diff != "" {
				t.Errorf("%s (-witness +ours)\n%s", name, diff)
			}
			delete(enums, name)
		}
	}
	if compared < 85 {
		t.Errorf("only %d types compared", compared)
	}
	for name := range objects {
		if slices.ContainsFunc(messages(t), func(message string) bool { return strings.HasPrefix(name, message) }) {
			continue // we have no types of whole messages
		}
		if reason, ok := witnessOnly[name]; !ok || reason == "" {
			t.Errorf("%s: only the witness makes an object", name)
		}
	}
	for name := range enums {
		t.Errorf("%s: only the witness makes an enum", name)
	}
}

// witnessOnly are objects that the witness makes and we do not.
var witnessOnly = map[string]string{
	"CompleteRequestParamsRef":       "one struct for all arms of a union",
	"CreateMessageResultContent":     "one struct for all arms of a union",
	"EmbeddedResourceResource":       "one struct for all arms of a union",
	"ReadResourceResultContentsElem": "one struct for all arms of a union",
	"SamplingMessageContent":         "one struct for all arms of a union",
	"JSONRPCRequestParamsMeta":       "RequestMeta, see typeNames",
	"ListRootsRequestParamsMeta":     "RequestMeta, see typeNames",
	"PingRequestParamsMeta":          "RequestMeta, see typeNames",
	"RequestParamsMeta":              "RequestMeta, see typeNames",
	"ToolOutputSchema":               "ToolSchema, see typeNames",
}

// messages returns the names of the definitions of whole messages.
func messages(t *testing.T) (names []string) {
	for name := range rawDefinitions(t, readFile(t, projectSchema)) {
		if isMessage(name) {
			names = append(names, placeName(t, name))
		}
	}
	return names
}

// placeName returns the witness's name for the type at a place.
func placeName(t *testing.T, origin string) (name string) {
	if origin == "" {
		return ""
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(origin, "*", "Elem"), "/") {
		s, err := goName(part)
		must(t, err)
		name += s
	}
	return name
}

func membersOf(m *model, typ *goType) map[string]member {
	members := make(map[string]member)
	for _, f := range typ.fields {
		if f.restored {
			continue
		}
		x := member{Optional: !f.required}
		switch f.typ.kind {
		case refString:
			x.Scalar = "string"
		case refBool:
			x.Scalar = "bool"
		case refInt:
			x.Scalar = "int"
		case refNumber:
			x.Scalar = "float64"
		case refNamed:
			if f.typ.name == "Base64" {
				x.Scalar = "string"
			}
		}
		members[f.json] = x
	}
	return members
}

// witness runs go-jsonschema's generator and reads the Go it writes.
func witness(t *testing.T) (objects map[string]map[string]member, enums map[string][]string) {
	schema, err := schemas.FromJSONReader(bytes.NewReader(readFile(t, projectSchema)))
	must(t, err)
	g, err := generator.New(generator.Config{
		DefaultPackageName: "witness", DefaultOutputName: "-", OnlyModels: true,
		DisableOmitZero: true, Tags: []string{"json"}, Warner: func(string) {},
	})
	must(t, err)
	must(t, g.AddFile("schema.json", schema))
	sources, err := g.Sources()
	must(t, err)
	objects, enums = make(map[string]map[string]member), make(map[string][]string)
	for name, text := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					objects[n.Name.Name] = membersOfStruct(t, s)
				}
			case *ast.ValueSpec:
				typ, ok := n.Type.(*ast.Ident)
				if value, isLit := n.Values[0].(*ast.BasicLit); ok && isLit {
					s, err := strconv.Unquote(value.Value)
					must(t, err)
					enums[typ.Name] = append(enums[typ.Name], s)
				}
			}
			return true
		})
	}
	for _, values := range enums {
		slices.Sort(values)
	}
	return objects, enums
}

func membersOfStruct(t *testing.T, s *ast.StructType) map[string]member {
	members := make(map[string]member)
	for _, f := range s.Fields.List {
		if f.Names[0].Name == "AdditionalProperties" {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		must(t, err)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		x := member{Optional: options == "omitempty"}
		typ := f.Type
		if p, ok := typ.(*ast.StarExpr); ok {
			typ = p.X
		}
		if id, ok := typ.(*ast.Ident); ok && slices.Contains([]string{"string", "int", "float64", "bool"}, id.Name) {
			x.Scalar = id.Name
		}
		members[name] = x
	}
	return members
}
