// Package schematest has the tests that every version of mcptypes has: random instances of its
// schema, examples and any text, each compared with an independent validator of the schema.
package schematest

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Package is a package of generated types.
type Package struct {
	Schemas              []string              // the files that it was generated from; the ledger is next to the first
	Examples             string                // the file of examples, one JSON object a line
	Definitions          map[string]func() any // makes a new value for each definition
	Pointers             map[string]string     // the JSON pointers to the definitions, if they are not all in one place
	Decode, DecodeStrict func([]byte, any) error
	Encode               func(any) ([]byte, error)

	RoundTrips *int // random instances for each schema file
	Seed       *uint64

	Judged string // a file that gets each instance with the verdict of DecodeStrict, "" for none; then a schema may be one whose valid instances are hard to guess

	read     *schema // nil before the first test that needs it
	examples []example
}

// TestRoundTrips makes random instances of the schema, decodes them with DecodeStrict and with Decode,
// encodes them, and checks the output with an independent validator.
func (p *Package) TestRoundTrips(t *testing.T) {
	ledger := p.readLedger(t)
	made, wanted := 0, 0
	p.eachInstance(t, func(t *testing.T, r *instances, name string) {
		in, ok := r.valid(name)
		if wanted++; !ok {
			return
		}
		made++
		v := p.Definitions[name]()
		err := p.DecodeStrict([]byte(in), v)
		if err != nil && p.Judged != "" && ledger.excuses("refused", example{Def: name, Kind: "valid"}, PathOf(err)) != "" {
			return
		} else if err != nil {
			t.Fatalf("%s %s: %v", name, in, err)
		}
		p.judged(t, name, in, true)
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
			if !SameValue(Parse(t, in), Parse(t, string(out))) {
				t.Fatalf("%s %s became %s", name, in, out)
			}
		}
	})
	t.Logf("%d of %d instances are valid", made, wanted)
	if made < wanted*9/10 && p.Judged == "" {
		t.Errorf("only %d of %d instances are valid", made, wanted)
	}
}

// TestVerdicts changes random instances in one place and compares the verdict of
// DecodeStrict with the validator's. The ledger may excuse the refusal of a valid instance,
// but never the acceptance of an invalid one.
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
		p.judged(t, name, string(in), strict == nil)
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

// judged appends an instance and the verdict of DecodeStrict to the file for them.
func (p *Package) judged(t *testing.T, name, instance string, accepted bool) {
	if p.Judged == "" {
		return
	}
	line, err := json.Marshal(map[string]any{
		"schema": strings.TrimSuffix(path.Base(p.Schemas[0]), ".json"), "pointer": p.Pointers[name], "instance": instance, "accepted": accepted,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(p.Judged, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// eachInstance calls f for the definitions of each schema file in turn. The flag sets how
// often for each file.
func (p *Package) eachInstance(t *testing.T, f func(t *testing.T, r *instances, name string)) {
	s := p.readSchema(t)
	for _, file := range p.Schemas {
		t.Run(path.Base(file), func(t *testing.T) {
			r := &instances{s, rand.New(rand.NewPCG(*p.Seed, 0)), 0}
			names := s.names[file]
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
	roots       []any          // of the files
	definitions map[string]any // by name
	validators  map[string]*jsonschema.Schema
	names       map[string][]string // of the definitions that each file adds, sorted
}

func (p *Package) readSchema(t testing.TB) *schema {
	if p.read != nil {
		return p.read
	}
	s := &schema{
		definitions: make(map[string]any),
		validators:  make(map[string]*jsonschema.Schema),
		names:       make(map[string][]string),
	}
	for _, file := range p.Schemas {
		s.read(t, file, p.Pointers)
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
func (s *schema) read(t testing.TB, file string, pointers map[string]string) {
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
	delete(root, "id")
	s.roots = append(s.roots, root)
	c := jsonschema.NewCompiler()
	// Patterns are read as the code does; ajv is their oracle.
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return outputschema.CompilePattern(s) })
	for _, name := range []string{ // formats are not asserted
		"uri", "uri-reference", "uri-template", "iri", "iri-reference", "date-time", "date", "time", "duration", "period", "email", "idn-email",
		"hostname", "idn-hostname", "ipv4", "ipv6", "regex", "uuid", "json-pointer", "relative-json-pointer", "semver",
	} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	if pointers == nil {
		key := "$defs"
		if root[key] == nil {
			key = "definitions"
		}
		pointers = make(map[string]string)
		for name := range root[key].(map[string]any) {
			pointers[name] = "#/" + key + "/" + name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pointers)) {
		if s.definitions[name] != nil {
			continue
		}
		s.names[file] = append(s.names[file], name)
		s.definitions[name] = lookUp(root, pointers[name])
		if s.validators[name], err = c.Compile(file + strings.ReplaceAll(pointers[name], "%", "%25")); err != nil {
			t.Fatal(err)
		}
	}
}

// at returns what a reference names.
func (s *schema) at(ref string) any {
	for _, root := range s.roots {
		if node := lookUp(root, ref); node != nil {
			return node
		}
	}
	return s.definitions[path.Base(ref)]
}

// lookUp returns the part of a schema at a pointer, or nil.
func lookUp(node any, pointer string) any {
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch n := node.(type) {
		case map[string]any:
			node = n[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// judge validates text as an instance of a definition.
func (s *schema) judge(name, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.validators[name].Validate(v)
}

// Parse returns a JSON value whose numbers keep their text.
func Parse(t testing.TB, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// SameValue compares JSON values, numbers by exact value.
func SameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, SameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, SameValue)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, ok1 := new(big.Rat).SetString(string(a))
		y, ok2 := new(big.Rat).SetString(string(b))
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a == b
}
