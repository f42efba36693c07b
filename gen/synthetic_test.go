package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// synthetic is a schema that the test makes up. Its definitions are read together with those of
// the others, under names that begin with the schema's, unless the names matter: then it is raw.
type synthetic struct {
	Name, Want string // Want is the error, or ok
	Raw        bool
	Defs       map[string]any `json:"$defs"`
}

func readSynthetic(t *testing.T) (cases []synthetic) {
	for line := range bytes.Lines(readFile(t, "testdata/synthetic.ndjson")) {
		var c synthetic
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// schema returns the definitions as a schema, under names that begin with prefix.
func (c synthetic) schema(prefix string) map[string]any {
	renamed := make(map[string]any)
	for name, d := range c.Defs {
		text := strings.ReplaceAll(compact(d), `"#/$defs/`, `"#/$defs/`+prefix)
		var tree any
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			panic(err)
		}
		renamed[prefix+name] = tree
	}
	return renamed
}

// TestSynthetic generates types from made-up schemas. Each either compiles, and its verdicts and
// round trips are those of an independent validator, or is refused with the place.
func TestSynthetic(t *testing.T) {
	t.Parallel()
	all := make(map[string]any)
	for _, c := range readSynthetic(t) {
		text := compact(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": c.schema("")})
		p := project{schema: "x.json", out: filepath.Join(projectPackage, "x")}
		_, err := p.unformatted([]byte(text)) // those that compile are formatted together
		got := "ok"
		if err != nil {
			got = err.Error()
		}
		if got != c.Want {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Want)
		} else if err == nil {
			prefix, err := goName(c.Name)
			if err != nil {
				t.Fatal(err)
			}
			if c.Raw {
				prefix = ""
			}
			maps.Copy(all, c.schema(prefix))
		}
	}
	compareWithValidator(t, map[string][]byte{
		"synthetic": []byte(compact(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": all})),
	}, *roundTrips*20)
}

// compareWithValidator generates a package from each schema, by name, and runs the tests of
// package schematest on all.
func compareWithValidator(t *testing.T, schemas map[string][]byte, trips int) {
	compareAll(t, schemas, trips, "")
}

// compareAll is compareWithValidator for schemas whose valid instances may be hard to guess, if judged names a file
// that gets the instances with their verdicts.
func compareAll(t *testing.T, schemas map[string][]byte, trips int, judged string) {
	_, dir, _ := copyProject(t)
	test := new(source)
	test.line("package field_test\n\nimport (\n\"flag\"\n\"testing\"\n\n\"github.com/codexmcp/codexmcp/mcptypes/internal/schematest\"")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		test.line("%q", "github.com/codexmcp/codexmcp/mcptypes/field/"+name)
	}
	test.line(")\n\nvar (\ntrips = flag.Int(\"roundtrips\", 0, \"\")\nseed = flag.Uint64(\"seed\", 1, \"\")\n)\n")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		file := filepath.Join(dir, "mcptypes/field", name+".json")
		writeFile(t, file, schemas[name])
		p := project{schema: file, out: filepath.Join(dir, "mcptypes/field", name)}
		files, err := p.generate(schemas[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := write(p.out, files, false); err != nil {
			t.Fatal(err)
		}
		m, err := p.model(schemas[name])
		if err != nil {
			t.Fatal(err)
		}
		test.line("func Test_%s(t *testing.T) {\np := schematest.Package{\nSchemas: []string{%q},\nDecode: %[1]s.Decode, DecodeStrict: %[1]s.DecodeStrict, Encode: %[1]s.Encode,\nRoundTrips: trips, Seed: seed, Judged: %[3]q,\nPointers: map[string]string{", name, filepath.Base(file), judged)
		for _, typ := range m.types {
			if at, ok := m.pointers[typ.origin]; ok {
				test.line("%q: %q,", typ.origin, at)
			}
		}
		test.line("},\nDefinitions: map[string]func() any{")
		for _, typ := range m.types {
			if _, ok := m.pointers[typ.origin]; ok {
				test.line("%q: func() any { return new(%s.%s) },", typ.origin, name, typ.name)
			}
		}
		test.line("},\n}\nt.Run(\"RoundTrips\", p.TestRoundTrips)\nt.Run(\"Verdicts\", p.TestVerdicts)\n}\n")
	}
	writeFile(t, filepath.Join(dir, "mcptypes/field/field_test.go"), test.Bytes())
	writeFile(t, filepath.Join(dir, "mcptypes/field/deviations.json"), readFile(t, "testdata/field.json"))
	if keep := os.Getenv("GEN_KEEP"); keep != "" {
		fmt.Println(os.CopyFS(keep, os.DirFS(dir)))
	}
	vet := map[bool]string{true: "-vet=all", false: "-vet=off"}[judged == ""]
	goRun(t, dir, "test", "-trimpath", vet, "-timeout", "0", "./mcptypes/field/...", "-roundtrips", strconv.Itoa(trips))
}
