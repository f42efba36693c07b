package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atombender/go-jsonschema/pkg/generator"
	"github.com/atombender/go-jsonschema/pkg/schemas"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	projectSchema  = "../schema/2025-06-18/schema.json"
	projectPackage = "../mcptypes"
)

// packages are the packages that are checked in.
var packages = []struct {
	project
	definitions, methods int
}{
	{project{schema: projectSchema, out: projectPackage}, 52, 25},
	{project{
		schema:     "../schema/2026-07-28/schema.json",
		extensions: []string{"../schema/2026-07-28/tasks.json"},
		base:       projectSchema,
		out:        "../mcptypes/modern",
	}, 129, 21 - 3 + 4}, // three methods of the schema are no longer requests, but occur in InputRequests
}

func readFile(t testing.TB, name string) []byte {
	return must.Get(os.ReadFile(name))(t)
}

func readModel(t *testing.T, p project) *model {
	m := must.Get(p.model(readFile(t, p.schema)))(t)
	m.version = filepath.Base(filepath.Dir(p.schema))
	return m
}

func TestPackagesAreUpToDate(t *testing.T) {
	for _, p := range packages {
		args := []string{"-check", "-schema", p.schema, "-out", p.out, "-base", p.base}
		for _, file := range p.extensions {
			args = append(args, "-extension", file)
		}
		if err := run(args, io.Discard); err != nil {
			t.Errorf("%v: run go generate ./...", err)
		}
	}
}

func TestEverythingIsDescribed(t *testing.T) {
	for _, p := range packages {
		m := readModel(t, p.project)
		if missing := undescribed(m); missing != nil {
			t.Errorf("%s: without a description: %q", p.out, missing)
		}
		if len(m.methods) != p.methods {
			t.Errorf("%s: %d methods, want %d", p.out, len(m.methods), p.methods)
		}
		definitions := 0
		for _, typ := range m.types {
			if typ.origin == "" || strings.Contains(typ.origin, "/") {
				continue
			}
			definitions++
			if _, ok := m.pageOf(typ.origin); !ok {
				t.Errorf("%s: no page of the specification", typ.origin)
			}
		}
		if definitions != p.definitions {
			t.Errorf("%s: %d definitions, want %d", p.out, definitions, p.definitions)
		}
	}
}

// undescribed lists the definitions and members that have no description.
func undescribed(m *model) (places []string) {
	for _, t := range m.types {
		if t.doc == "" && t.kind != kindHand && t.kind != kindShape && t.origin != "" {
			places = append(places, t.name)
		}
		if t.kind != kindObject {
			continue
		}
		for _, f := range t.fields {
			if !f.constant && f.describe() == "" {
				places = append(places, t.name+"."+f.name)
			}
		}
	}
	return places
}

// official are the models of all official schemas, with the places in each schema.
func official(t *testing.T) (models []*model, places map[string]bool) {
	places = make(map[string]bool)
	var walk func(at string, node any)
	walk = func(at string, node any) {
		places[place(at)], places["*/"+path.Base(at)] = true, true
		m, _ := node.(map[string]any)
		if parts, ok := m["allOf"].([]any); ok {
			for _, part := range parts {
				walk(at, part)
			}
		}
		if properties, ok := m["properties"].(map[string]any); ok {
			for member, p := range properties {
				walk(at+"/"+member, p)
			}
		}
		for _, key := range keywordSchema {
			if m[key] != nil {
				walk(at+"/*", m[key])
			}
		}
	}
	for _, version := range versions {
		text, extensions := upstream(t, version), [][]byte(nil)
		if version == "2026-07-28" {
			extensions = append(extensions, upstream(t, "tasks"))
		}
		m, err := modelOf(text, extensions...)
		must.OK(t, err)
		m.version = version
		models = append(models, m)
		for _, text := range append(extensions, text) {
			for name, d := range rawDefinitions(t, text) {
				walk(name, d)
			}
		}
	}
	return models, places
}

// TestTables checks that each exception applies to an official schema and has a reason.
func TestTables(t *testing.T) {
	models, places := official(t)
	types := make(map[string]bool)
	for _, m := range models {
		for _, typ := range m.types {
			types[typ.name] = true
		}
	}
	check := func(table, row, reason string, applies bool) {
		if reason == "" || !applies {
			t.Errorf("%s: row %q applies: %v, reason: %q", table, row, applies, reason)
		}
	}
	for at, row := range typeNames {
		check("typeNames", at, row.reason, places[at] && types[row.name])
	}
	for name, row := range definitionNames {
		check("definitionNames", name, row.reason, places[name] && types[row.name])
	}
	for at, reason := range rawMembers {
		check("rawMembers", at, reason, places[at])
	}
	for name, row := range handTypes {
		check("handTypes", name, row.reason, types[name])
	}
	for name, row := range markers {
		check("markers", name, row.reason, types[name])
	}
	for name, row := range copies {
		check("copies", name, row.reason, places[name] && places[row.of])
	}
	for name, row := range extended {
		check("extended", name, row.reason, types[name] && types[row.by])
	}
	for at, row := range extraArms {
		check("extraArms", at, row.reason, places[at])
	}
	for name, row := range besideNames {
		check("besideNames", name, row.reason, types[name])
	}
	for name, row := range guarded {
		check("guarded", name, row.reason, name == "*" || types[name])
	}
	for end, row := range lostMeta {
		var restored []int
		for _, m := range models {
			n := 0
			for _, typ := range m.types {
				if definition, ok := strings.CutSuffix(typ.origin, end+"/params"); ok && definition != "" &&
					slices.ContainsFunc(typ.fields, func(f *field) bool { return f.restored }) {
					n++
				}
			}
			restored = append(restored, n)
		}
		want := map[string][]int{"Request": {13, 13, 14, 3, 3}, "Notification": {4, 4, 4, 1, 0}}[end]
		check("lostMeta", fmt.Sprint(end, " ", restored), row.reason, slices.Equal(restored, want))
	}
	for _, table := range []map[string]string{pages, moved} {
		for page, definitions := range table {
			for d := range strings.FieldsSeq(definitions) {
				check("pages", d, page, places[d])
			}
		}
	}
}

// rawDefinitions returns the definitions of a schema as it is written.
func rawDefinitions(t *testing.T, text []byte) map[string]any {
	var tree any
	must.OK(t, json.Unmarshal(text, &tree))
	_, definitions := definitionsOf(tree)
	return definitions
}

// TestGolden generates from a schema with one definition for each feature.
func TestGolden(t *testing.T) {
	p := project{schema: "testdata/2000-01-01/schema.json", out: "testdata/golden"}
	files := must.Get(p.generate(readFile(t, p.schema)))(t)
	for name, got := range files {
		golden := filepath.Join("testdata/golden", name+".golden")
		if *update {
			must.OK(t, os.WriteFile(golden, got, 0o644))
		}
		if diff := cmp.Diff(string(readFile(t, golden)), string(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestRefusals checks the error for each construct without a rule.
func TestRefusals(t *testing.T) {
	tests := []struct{ definitions, want string }{

		{`"A":{"allOf":[{"$ref":"#/definitions/A"}]}`, `#/definitions/A: the definition contains itself`},
		{`"A":{"allOf":[{"$ref":"#/definitions/B"}]}`, `#/definitions/A/allOf/0: B is not defined`},
		{`"A":{"allOf":[{"type":"object","properties":{"b":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"integer"}}}]}`,
			`#/definitions/A/allOf/1/properties/b: no rule for what both {"type":["string"]} and {"type":["integer"]} admit`},
		{`"A":{"type":"object","oneOf":[{}]}`, `#/definitions/A: no rule for the keyword "oneOf"`},
		{`"A":{"properties":{"b":{}}}`, `#/definitions/A: no rule for properties of a value that need not be an object`},
		{`"A":{"type":"object","properties":{"b":{"type":"string","not":{"const":"x"}}}}`, `#/definitions/A/properties/b: no rule for the keyword "not"`},
		{`"A":{"type":"object","required":["a"],"anyOf":[{"type":"object"}]}`, `#/definitions/A: no rule for a choice next to members`},
		{`"A":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}`, `#/definitions/A: no rule for additional members of one type next to others`},
		{`"A":{"type":"object","properties":{"b":{"type":["string","null"]}}}`, `#/definitions/A/properties/b: no rule for a member that may be absent and may be null`},
		{`"A":{"type":"object","properties":{"b":{"type":["string","integer"]}}}`, `#/definitions/A/properties/b: no rule for the types ["string" "integer"]`},
		{`"A":{"type":"object","properties":{"b":{"type":"boolean","const":true}}}`, `#/definitions/A/properties/b: no rule for the constant true`},
		{`"A":{"anyOf":[{"type":"string"},{"type":"object"}]}`, `#/definitions/A/anyOf/0: no rule for an arm that is neither a definition nor a list`},
		{`"A":{"anyOf":[{"$ref":"#/definitions/B"},{"$ref":"#/definitions/C"}]},"B":{"type":"object","properties":{"x":{"type":"string"}}},"C":{"type":"object","properties":{"y":{"type":"string"}}}`,
			`#/definitions/A: the arms cannot be told apart: B has no constant, and no row in markers`},
		{`"A":{"type":"object","properties":{"b":{"type":"object","properties":{"x":{"type":"string"}}}}},"AB":{"type":"string"}`,
			`#/definitions/AB: its type would be called AB, as that of #/definitions/A/properties/b: it needs a row in typeNames`},

		{`"A":{"type":"object","properties":{"b":{"$ref":"other.json"}}}`, `#/definitions/A/properties/b: $ref "other.json" does not name a definition of this schema`},
		{`"A":{"type":"object","properties":{"b":{"items":{"$ref":"#/definitions/C"},"type":"array"}}}`, `#/definitions/A/properties/b/items: C is not defined`},
		{`"FooRequest":{"type":"object","properties":{"method":{"type":"string","const":"foo"},"params":{"type":"object","properties":{"_meta":{"type":"object"}}}},"required":["method"]},"ClientRequest":{"anyOf":[{"$ref":"#/definitions/FooRequest"}]}`,
			`#/definitions/FooRequest: no result`},
		{`"FooRequest":{"type":"object","properties":{"params":{"type":"object","properties":{"a":{}}}}}`,
			`#/definitions/FooRequest/properties/params/_meta: no rule makes its type RequestMeta`},
	}
	for _, tt := range tests {
		_, err := modelOf([]byte(`{"definitions":{` + tt.definitions + `}}`))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.definitions, err, tt.want)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

func TestGoName(t *testing.T) {
	for schema, want := range map[string]string{
		"tools/call": "ToolsCall", "date-time": "DateTime", "_meta": "Meta", "id": "ID", "taskIds": "TaskIDs", "TaskIDs": "TaskIDs",
		"ttlMs": "TTLMs", "websiteUrl": "WebsiteURL", "html_url": "HTMLURL", "identity": "Identity", "Apiary": "Apiary",
		"JSONRPCError": "JSONRPCError", "ElicitRequestURL": "ElicitRequestURL", "mcpServers": "MCPServers", "utf8": "UTF8", "is": "Is",
		"s": "S", "größeUri": "GrößeURI",
	} {
		if got, err := goName(schema); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", schema, got, err, want)
		}
		if again, _ := goName(want); again != want {
			t.Errorf("%s becomes %s", want, again)
		}
	}
}

// TestTags checks that the json tag of each field is the name that the codec reads it by: the codec does not read the tags.
func TestTags(t *testing.T) {
	for _, p := range packages {
		tags, read := map[string]string{}, map[string]string{} // by type and field
		for _, file := range []string{"zz_types.go", "zz_decode.go"} {
			for _, d := range must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(p.out, file), nil, 0))(t).Decls {
				name := ""
				ast.Inspect(d, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.TypeSpec:
						name = n.Name.Name
					case *ast.Field:
						if n.Tag != nil {
							tag := reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("json")
							tags[name+"."+n.Names[0].Name], _, _ = strings.Cut(tag, ",")
						} else if file == "zz_types.go" {
							t.Errorf("%s: %s has a field without a tag", p.out, name)
						}
					case *ast.StarExpr: // the receiver
						if typ, ok := n.X.(*ast.Ident); ok && name == "" {
							name = typ.Name
						}
					case *ast.CaseClause:
						field := ""
						ast.Inspect(n, func(n ast.Node) bool {
							if s, ok := n.(*ast.SelectorExpr); ok && field == "" && fmt.Sprint(s.X) == "v" {
								field = s.Sel.Name
							}
							return field == ""
						})
						if text, ok := n.List[0].(*ast.BasicLit); ok && field != "" {
							read[name+"."+field] = strings.Trim(text.Value, `"`)
						}
					}
					return true
				})
			}
		}
		maps.DeleteFunc(tags, func(_, tag string) bool { return tag == "-" })
		if len(tags) < 200 {
			t.Errorf("%s: only %d tags are found", p.out, len(tags))
		}
		must.Equal(t, p.out, read, tags)
	}
}

// TestNoUnionIsAny finds the choices where the official schemas write them, and checks that none became raw JSON or an object without a type.
func TestNoUnionIsAny(t *testing.T) {
	t.Parallel()
	models, texts := map[string]*model{}, map[string][][]byte{}
	official, _ := official(t)
	for _, m := range official {
		models[m.version], texts[m.version] = m, [][]byte{upstream(t, m.version)}
	}
	texts["2026-07-28"] = append(texts["2026-07-28"], upstream(t, "tasks"))
	least := map[string]int{ // the choices that are found: unions, and places that have one
		"2024-11-05": 6, "2025-03-26": 6, "2025-06-18": 6, "2025-11-25": 13, "2026-07-28": 30,
	}
	for name, m := range models {
		kinds := map[string]ref{}
		for _, typ := range m.types {
			kinds[typ.origin] = ref{kind: refNamed, name: typ.name}
			for _, f := range typ.fields {
				at := typ.origin + "/" + f.json
				for r := &f.typ; r != nil; r = r.elem {
					kinds[at] = *r
					if r.kind != refNullable {
						at += "/*"
					}
				}
			}
		}
		found := 0
		for _, text := range texts[name] {
			for definition, d := range rawDefinitions(t, text) {
				if isMessage(definition) && kinds[definition].name == "" {
					continue
				}
				for _, at := range choices(definition, d) {
					r, ok := kinds[at]
					if found++; !ok {
						t.Errorf("%s: nothing was made of %s", name, at)
					} else if slices.Contains([]refKind{refAny, refObject, refMembers}, r.kind) {
						t.Errorf("%s: %s is %s", name, at, r)
					}
				}
			}
		}
		if found < least[name] {
			t.Errorf("%s: %d choices, want %d", name, found, least[name])
		}
	}
}

// choices returns the places of a schema that have several arms besides null.
func choices(at string, node any) (places []string) {
	m, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		arms, _ := m[key].([]any)
		n := 0
		for _, a := range arms {
			arm, _ := a.(map[string]any)
			if arm["type"] != "null" {
				n++
			}
		}
		if n > 1 {
			places = append(places, at)
			for i, a := range arms { // those of other types are copies of definitions
				arm, _ := a.(map[string]any)
				if arm["properties"] == nil {
					continue
				}
				places = append(places, inside(fmt.Sprintf("%s/%s/%d", at, key, i), arm)...)
			}
		}
	}
	return append(places, inside(at, m)...)
}

// inside returns the choices of a schema's members and elements.
func inside(at string, m map[string]any) (places []string) {
	properties, _ := m["properties"].(map[string]any)
	for member, p := range properties {
		places = append(places, choices(at+"/"+member, p)...)
	}
	for _, key := range keywordSchema {
		places = append(places, choices(at+"/*", m[key])...)
	}
	return places
}

// TestCommonTags checks which members tell the arms of a choice apart: constants of all arms, which are not all the same.
// At most one arm may leave it out.
func TestCommonTags(t *testing.T) {
	arms := func(required ...bool) map[string]*schemas.Type {
		shapes := map[string]*schemas.Type{}
		for i, r := range required {
			shape := &schemas.Type{Properties: map[string]*schemas.Type{
				"kind": {Const: fmt.Sprint("k", i)}, "same": {Const: "s"}, "free": {},
			}}
			if r {
				shape.Required = []string{"kind", "same"}
			}
			shapes[fmt.Sprint("A", i)] = shape
		}
		return shapes
	}
	for _, tt := range []struct {
		required []bool
		want     []string
	}{
		{[]bool{true, true}, []string{"kind"}}, {[]bool{true, false}, []string{"kind"}},
		{[]bool{false, false}, nil}, {[]bool{false, true, false}, nil}, {[]bool{true}, []string{"kind", "same"}},
	} {
		b := &builder{shapes: arms(tt.required...)}
		u := &goType{}
		for i := range tt.required {
			u.union.arms = append(u.union.arms, &arm{name: fmt.Sprint("A", i)})
		}
		if got := b.commonTags(u); !slices.Equal(got, tt.want) {
			t.Errorf("required %v: %v, want %v", tt.required, got, tt.want)
		}
	}
	one, same := &arm{name: "a", tags: []string{"x"}}, &arm{name: "b", tags: []string{"y", "x"}}
	if !overlap([]*arm{one, same}) {
		t.Error("arms with the same tag do not overlap")
	}
	same.present = []string{"m"}
	if overlap([]*arm{one, same}) {
		t.Error("arms with the same tag and another member overlap")
	}
}

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
	"SamplingMessageContent":         "one struct for all arms of a union", "JSONRPCRequestParamsMeta": "RequestMeta, see typeNames",
	"ListRootsRequestParamsMeta": "RequestMeta, see typeNames", "PingRequestParamsMeta": "RequestMeta, see typeNames",
	"RequestParamsMeta": "RequestMeta, see typeNames", "ToolOutputSchema": "ToolSchema, see typeNames",
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
		s := must.Get(goName(part))(t)
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
	schema := must.Get(schemas.FromJSONReader(bytes.NewReader(readFile(t, projectSchema))))(t)
	g, err := generator.New(generator.Config{
		DefaultPackageName: "witness", DefaultOutputName: "-", OnlyModels: true,
		DisableOmitZero: true, Tags: []string{"json"}, Warner: func(string) {},
	})
	must.OK(t, err)
	must.OK(t, g.AddFile("schema.json", schema))
	sources, err := g.Sources()
	must.OK(t, err)
	objects, enums = make(map[string]map[string]member), make(map[string][]string)
	for name, text := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		must.OK(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					objects[n.Name.Name] = membersOfStruct(t, s)
				}
			case *ast.ValueSpec:
				typ, ok := n.Type.(*ast.Ident)
				if value, isLit := n.Values[0].(*ast.BasicLit); ok && isLit {
					s := must.Get(strconv.Unquote(value.Value))(t)
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
		tag := must.Get(strconv.Unquote(f.Tag.Value))(t)
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
