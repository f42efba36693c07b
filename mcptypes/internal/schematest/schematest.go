// Package schematest has the tests that every version of mcptypes has: random instances of its
// schema, and examples, each compared with an independent validator of the schema.
package schematest

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Package is a package of generated types.
type Package struct {
	Schemas  []string // the files that it was generated from; the ledger is next to the first
	Examples string   // the file of examples, one JSON object a line
	// makes a new value for each definition, and for each "X/params" of a message X
	Definitions          map[string]func() any
	Decode, DecodeStrict func([]byte, any) error
	Encode               func(any) ([]byte, error)

	RoundTrips *int // random instances for each schema file
	Seed       *uint64

	read *schema // nil before the first test that needs it
}

// TestRoundTrips makes random instances of the schema, decodes them with DecodeStrict and with Decode,
// encodes them, and checks the output with an independent validator.
func (p *Package) TestRoundTrips(t *testing.T) {
	made, wanted := 0, 0
	p.eachInstance(t, func(t *testing.T, r *instances, name string) {
		in, ok := r.valid(name)
		if wanted++; !ok {
			return
		}
		made++
		v := p.Definitions[name]()
		err := p.DecodeStrict([]byte(in), v)
		if err != nil {
			t.Fatalf("%s %s: %v", name, in, err)
		}
		lenient := p.Definitions[name]()
		if err := p.Decode([]byte(in), lenient); err != nil {
			t.Fatalf("%s %s: Decode: %v", name, in, err)
		}
		for _, v := range []any{v, lenient} {
			out, err := p.Encode(Value(v))
			if err != nil {
				t.Fatalf("%s %s: encode: %v", name, in, err)
			}
			if err := r.judge(name, string(out)); err != nil {
				t.Fatalf("%s %s became %s: %v", name, in, out, err)
			}
			if diff := DiffJSON(t, in, string(out)); diff != "" {
				t.Fatalf("%s %s became %s", name, in, out)
			}
		}
	})
	t.Logf("%d of %d instances are valid", made, wanted)
	if made < wanted*9/10 {
		t.Errorf("only %d of %d instances are valid", made, wanted)
	}
}

// TestVerdicts changes random instances in one place and compares the verdict of DecodeStrict with the validator's. The
// ledger may excuse the refusal of a valid instance, but never the acceptance of an invalid one.
func (p *Package) TestVerdicts(t *testing.T) {
	ledger := p.readLedger(t)
	var valid, invalid, excused int
	p.eachInstance(t, func(t *testing.T, r *instances, name string) {
		whole, _ := r.valid(name)
		tree, kind := r.mutant(Parse(t, whole))
		in, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		strict, judged := p.DecodeStrict(in, p.Definitions[name]()), r.judge(name, string(in))
		switch {
		case strict == nil && judged == nil:
			valid++
		case strict != nil && judged != nil:
			invalid++
		case strict == nil:
			t.Errorf("%s %s: accepted, but invalid: %v", name, in, judged)
		default:
			excused++
			if ledger.excuses("refused", example{Def: name, Kind: "mutant-still-valid:" + kind}, PathOf(strict)) == "" {
				t.Errorf("%s %s %s: valid, but refused: %v", name, kind, in, strict)
			}
		}
		if err := p.Decode(in, p.Definitions[name]()); strict == nil && err != nil {
			t.Errorf("%s %s: strict accepts what Decode refuses: %v", name, in, err)
		}
	})
	t.Logf("%d valid, %d invalid, %d excused by the ledger", valid, invalid, excused)
}

// eachInstance calls f for the definitions of each schema file that the package has, in turn. The flag sets how
// often for each file.
func (p *Package) eachInstance(t *testing.T, f func(t *testing.T, r *instances, name string)) {
	s := p.readSchema(t)
	for _, file := range p.Schemas {
		t.Run(path.Base(file), func(t *testing.T) {
			r := &instances{s, rand.New(rand.NewPCG(*p.Seed, 0)), 0}
			names := slices.DeleteFunc(slices.Clone(s.names[file]),
				func(name string) bool { return p.Definitions[name] == nil })
			for i := range *p.RoundTrips {
				f(t, r, names[i%len(names)])
			}
		})
	}
}

// Value returns *p for a union, and p otherwise. p comes from the table of definitions.
func Value(p any) any {
	if v := reflect.ValueOf(p).Elem(); v.Kind() == reflect.Interface {
		return v.Interface()
	}
	return p
}

// schema is a schema with its extensions, and a validator for it.
type schema struct {
	definitions map[string]any // by name
	validators  map[string]*jsonschema.Schema
	names       map[string][]string // of the definitions that each file adds, sorted
}

func (p *Package) readSchema(t *testing.T) *schema {
	if p.read != nil {
		return p.read
	}
	s := &schema{
		definitions: make(map[string]any),
		validators:  make(map[string]*jsonschema.Schema),
		names:       make(map[string][]string),
	}
	for _, file := range p.Schemas {
		s.read(t, file)
	}
	for name := range p.Definitions {
		if s.validators[name] == nil {
			t.Fatalf("no schema defines %s", name)
		}
	}
	p.read = s
	return s
}

// read adds the definitions of a schema file that no earlier file had.
func (s *schema) read(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	root := doc.(map[string]any)
	delete(root, "$id")
	c := jsonschema.NewCompiler()
	for _, name := range []string{"uri", "uri-template"} { // formats are not asserted
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	key := "$defs"
	if root[key] == nil {
		key = "definitions"
	}
	add := func(name, pointer string, definition any) {
		if s.definitions[name] != nil {
			return
		}
		s.names[file] = append(s.names[file], name)
		s.definitions[name] = definition
		if s.validators[name], err = c.Compile(file + "#/" + key + "/" + pointer); err != nil {
			t.Fatal(err)
		}
	}
	definitions := root[key].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		add(name, name, definitions[name])
		message, _ := definitions[name].(map[string]any)
		at := name
		if parts, ok := message["allOf"].([]any); ok && len(parts) == 2 { // the second has what the message adds
			message, _ = parts[1].(map[string]any)
			at += "/allOf/1"
		}
		members, _ := message["properties"].(map[string]any)
		if params, ok := members["params"].(map[string]any); ok && params["$ref"] == nil {
			add(name+"/params", at+"/properties/params", params)
		}
	}
}

// at returns what a reference names.
func (s *schema) at(ref string) any { return s.definitions[path.Base(ref)] }

// judge validates text as an instance of a definition.
func (s *schema) judge(name, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.validators[name].Validate(v)
}

// Parse returns a JSON value whose numbers keep their text.
func Parse(t *testing.T, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
