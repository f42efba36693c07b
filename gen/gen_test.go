package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	projectSchema  = "../schema/2025-06-18/schema.json"
	projectPackage = "../mcptypes"
)

func readFile(t testing.TB, name string) []byte {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPackageIsUpToDate(t *testing.T) {
	if err := run([]string{"-check", "-schema", projectSchema, "-out", projectPackage}); err != nil {
		t.Errorf("%v: run go generate ./...", err)
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	text := readFile(t, projectSchema)
	first, err := generate(text, projectSchema, projectPackage)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := generate(text, projectSchema, projectPackage)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, again) {
			t.Fatal("the same schema gave other files")
		}
	}
}

func TestEverythingIsDescribed(t *testing.T) {
	m, err := modelOf(readFile(t, projectSchema))
	if err != nil {
		t.Fatal(err)
	}
	if missing := undescribed(m); missing != nil {
		t.Errorf("without a description: %q", missing)
	}
	if len(m.methods) != 25 {
		t.Errorf("%d methods, want 25", len(m.methods))
	}
	definitions := 0
	for _, typ := range m.types {
		if typ.origin == "" || strings.Contains(typ.origin, "/") {
			continue
		}
		definitions++
		if _, ok := pageOf(typ.origin); !ok {
			t.Errorf("%s: no page of the specification", typ.origin)
		}
	}
	if definitions != 91 {
		t.Errorf("%d definitions, want 91", definitions)
	}
}

// TestTables checks that each exception applies to the project's schema and
// has a reason.
func TestTables(t *testing.T) {
	schema, err := parseSchema(readFile(t, projectSchema))
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{definitions: schema.Definitions, types: make(map[string]*goType)}
	places := make(map[string]bool)
	for name, d := range schema.Definitions {
		if err := b.definition(name, d); err != nil {
			t.Fatal(err)
		}
		places[name] = true
		var walk func(place string, node any)
		walk = func(place string, node any) {
			m, _ := node.(map[string]any)
			if properties, ok := m["properties"].(map[string]any); ok {
				for member, p := range properties {
					places[place+"/"+member] = true
					walk(place+"/"+member, p)
				}
			}
			for _, key := range keywordSchema {
				if m[key] != nil {
					places[place+"/*"] = true
					walk(place+"/*", m[key])
				}
			}
		}
		walk(name, definitionTree(t, name))
	}
	check := func(table, row, reason string, applies bool) {
		if reason == "" || !applies {
			t.Errorf("%s: row %q applies: %v, reason: %q", table, row, applies, reason)
		}
	}
	for place, row := range typeNames {
		check("typeNames", place, row.reason, places[place])
	}
	for place, reason := range rawMembers {
		check("rawMembers", place, reason, places[place])
	}
	for name, row := range handTypes {
		check("handTypes", name, row.reason, b.types[name] != nil)
	}
	for name, row := range telling {
		check("telling", name, row.reason, b.types[name] != nil)
	}
	for name, reason := range openUnions {
		check("openUnions", name, reason, b.types[name] != nil)
	}
	for end, row := range lostMeta {
		restored := 0
		for _, typ := range b.types {
			if definition, ok := strings.CutSuffix(typ.origin, end+"/params"); ok && definition != "" &&
				slices.ContainsFunc(typ.fields, func(f *field) bool { return f.restored }) {
				restored++
			}
		}
		want := map[string]int{"Request": 14 + 1, "Notification": 4}[end] // PaginatedRequest is no method
		check("lostMeta", end, row.reason, restored == want)
	}
	for page, definitions := range pages {
		for d := range strings.FieldsSeq(definitions) {
			check("pages", d, page, places[d])
		}
	}
}

// TestGolden generates from a schema with one definition for each feature.
func TestGolden(t *testing.T) {
	files, err := generate(readFile(t, "testdata/2000-01-01/schema.json"), "testdata/2000-01-01/schema.json", "testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range files {
		golden := filepath.Join("testdata/golden", name+".golden")
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(readFile(t, golden)), string(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestRefusals holds the message for each construct without a rule.
func TestRefusals(t *testing.T) {
	tests := []struct{ definitions, want string }{
		{`"A":{"type":"object","patternProperties":{}}`, `#/definitions/A: keyword "patternProperties" is not known to gen`},
		{`"A":{"allOf":[{"$ref":"#/definitions/A"}]}`, `#/definitions/A: keyword "allOf" is not known to gen`},
		{`"A":{"type":"object","properties":{"b":{"type":"array","items":{"oneOf":[]}}}}`,
			`#/definitions/A/properties/b/items: keyword "oneOf" is not known to gen`},
		{`"A":{"type":"array","items":{}}`, `A: no rule for a definition of type ["array"]`},
		{`"A":{"type":["integer","null"]}`, `A: no rule for the list of types ["integer" "null"] in A`},
		{`"A":{"type":"object","additionalProperties":false,"properties":{"b":{}}}`,
			`A: no rule for additionalProperties with constraints beside properties`},
		{`"A":{"type":"object","properties":{"b":{"const":"x","type":"string"}}}`, `A/b: no rule for a constant that may be absent`},
		{`"A":{"type":"object","properties":{"b":{"const":5,"type":"integer"}},"required":["b"]}`,
			`A/b: no rule for a constant of type "integer"`},
		{`"A":{"type":"object","properties":{"b":{"minimum":0,"type":"integer"}}}`, `A/b: no rule for an integer with bounds`},
		{`"A":{"type":"object","properties":{"b":{"minimum":0,"type":"number"}}}`, `A/b: no rule for a number with one bound`},
		{`"A":{"type":"object","properties":{"b":{"enum":[1,2]}}}`, `A/b: no rule for the enum value 1`},
		{`"A":{"type":"object","properties":{"b":{"type":"array"}}}`, `A/b: no rule for an array without items`},
		{`"A":{"type":"object","properties":{"b":{"$ref":"other.json"}}}`, `A/b: $ref "other.json" does not name a definition of this schema`},
		{`"A":{"type":"object","properties":{"b":{"$ref":"#/definitions/C"}}}`, `A/b: C is not defined`},
		{`"A":{"type":"object","required":["b"]}`, `A: required member "b" is not described`},
		{`"A":{"type":"object","properties":{"extra":{"type":"string"}}}`, `A/extra: the name Extra is taken by the unknown members`},
		{`"A":{"type":"object","properties":{"b":{"type":"string"},"_b":{"type":"string"}}}`, `A: two members would both be called B`},
		{`"A":{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `A/anyOf/0: no rule for an arm that is not a reference`},
		{`"A":{"anyOf":[{"$ref":"#/definitions/B"}]},"B":{"type":"string"}`, `A/anyOf/0: no rule for the arm B, which is not an object`},
		{`"A":{"anyOf":[{"$ref":"#/definitions/B"},{"$ref":"#/definitions/C"}]},"B":{"type":"object"},"C":{"type":"object"}`,
			`A: the arms of A cannot be told apart: B`},
		{`"FooRequest":{"type":"object","properties":{"method":{"type":"string","const":"foo"},"params":{"type":"object","properties":{"a":{}}}},"required":["method"]},"ClientRequest":{"anyOf":[{"$ref":"#/definitions/FooRequest"}]}`,
			`FooRequest: no result`},
	}
	for _, tt := range tests {
		_, err := modelOf([]byte(`{"definitions":{` + tt.definitions + `}}`))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.definitions, err, tt.want)
		}
	}
}
