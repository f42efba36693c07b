package outputschema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codexmcp/codexmcp/internal/outputschema"
)

// FuzzOracle compares the verdicts on random schemas and answers with those of another
// implementation.
func FuzzOracle(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := generator{rand.New(rand.NewPCG(seed, 0)), 2020}
		schema := g.document()
		theirs, refused := oracle(t, schema)
		ours, err := outputschema.Compile(schema)
		if err != nil && refused == nil && (strings.Contains(err.Error(), "/$ref: ") || g.draft == 7 && strings.Contains(err.Error(), "at /$defs/")) {
			return // the other one does not read what nothing uses or the draft does not know
		}
		if (err == nil) != (refused == nil) {
			t.Fatalf("%s\nours: %v\ntheirs: %v", schema, err, refused)
		}
		if err != nil {
			return
		}
		for range 8 {
			answer := encode(g.value(3))
			_, got := ours.Check(string(answer))
			if got != nil && strings.Contains(got.Error(), "too deeply") {
				return // the other one knows at which reference
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
			if err != nil {
				t.Fatal(err)
			}
			want := theirs.Validate(value)
			if (got == nil) != (want == nil) {
				t.Fatalf("%s\n%s\nours: %v\ntheirs: %v", schema, answer, got, want)
			}
			var ourFault *outputschema.FaultError
			var theirFault *jsonschema.ValidationError
			if strings.Contains(fmt.Sprint(got), "the property name") {
				continue // the other one names another place
			}
			if errors.As(got, &ourFault) && errors.As(want, &theirFault) && !faulty(theirFault, ourFault.Path) {
				t.Fatalf("%s\n%s\nours: %v\ntheirs: %v", schema, answer, got, want)
			}
		}
	})
}

// TestFormatIsANote checks that no format is asserted, whatever the draft says of it.
func TestFormatIsANote(t *testing.T) {
	for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		schema, err := outputschema.Compile(encode(object{"$schema": draft, "type": "string", "format": "date"}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := schema.Check(`"tomorrow"`); err != nil {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

// faulty reports whether an error is about the value at a path, or a part of it.
func faulty(e *jsonschema.ValidationError, path string) bool {
	at := jsontext.Pointer("")
	for _, token := range e.InstanceLocation {
		at = at.AppendToken(token)
	}
	if jsontext.Pointer(path).Contains(at) {
		return true
	}
	for _, cause := range e.Causes {
		if faulty(cause, path) {
			return true
		}
	}
	return false
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("not loaded") }

func oracle(t *testing.T, schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return outputschema.CompilePattern(s) })
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	for _, name := range []string{"date", "ipv4", "email"} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource("schema:///oracle", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema:///oracle")
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// generator makes random schemas and answers, of few names and values so that they meet.
type generator struct {
	*rand.Rand
	draft int
}

type object = map[string]any

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

func (g *generator) name() string { return pick(g, "a", "b", "c", "a/b") }

func (g *generator) document() []byte {
	g.draft = pick(g, 2020, 2020, 7)
	root, ok := g.schema(3).(object)
	if !ok {
		root = object{}
	}
	if g.draft == 7 {
		root["$schema"] = "http://json-schema.org/draft-07/schema#"
	}
	root["$defs"] = object{"x": g.schema(2), "y": object{"$defs": object{"z": g.schema(1)}, "type": g.kind()}}
	root["definitions"] = object{"x": g.schema(2)}
	return encode(root)
}

func (g *generator) kind() any {
	one := func() string {
		return pick(g, "null", "boolean", "number", "integer", "string", "array", "object", "object", "array")
	}
	if g.IntN(3) == 0 {
		return []string{one(), one()} // may be the same, which is wrong
	}
	return one()
}

func (g *generator) value(depth int) any {
	switch n := g.IntN(9); {
	case n < 3 && depth > 0:
		o := object{}
		for range g.IntN(4) {
			o[g.name()] = g.value(depth - 1)
		}
		return o
	case n < 6 && depth > 0:
		all := []any{}
		for range g.IntN(4) {
			all = append(all, g.value(depth-1))
		}
		return all
	}
	return pick[any](g, nil, true, false, 0, 1, 2, 1.5, -1, 0.3, 1e30, "", "a", "ab", "é", "2020-01-01", "1.2.3.4", "x@y.z")
}

func (g *generator) schemas(depth int) any {
	all := []any{}
	for range 1 + g.IntN(3) {
		all = append(all, g.schema(depth))
	}
	return all
}

func (g *generator) named(depth int, name func() string) object {
	o := object{}
	for range g.IntN(3) {
		o[name()] = g.schema(depth)
	}
	return o
}

func (g *generator) schema(depth int) any {
	switch g.IntN(12) {
	case 0:
		return true
	case 1:
		return g.IntN(3) > 0
	}
	s := object{}
	for range 1 + g.IntN(3) {
		g.keyword(s, depth)
	}
	if ref, ok := s["$ref"]; ok && g.draft == 7 { // whose other keywords that draft ignores
		return object{"$ref": ref}
	}
	return s
}

func (g *generator) keyword(s object, depth int) {
	leaf := []string{"type", "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "$ref", "format", "unknown"}
	deep := []string{"properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "items", "items", "prefixItems", "additionalItems", "allOf", "anyOf", "oneOf", "not", "if"}
	names := leaf
	if depth > 0 && g.IntN(3) > 0 {
		names = deep
	}
	name := pick(g, names...)
	depth--
	if g.IntN(150) == 0 {
		s[name] = g.value(1) // probably wrong
		return
	}
	switch name {
	case "type":
		s[name] = g.kind()
	case "enum":
		s[name] = []any{g.value(0), []any{g.value(1)}, object{"a": g.value(1)}}
	case "const", "unknown":
		s[name] = g.value(1)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		s[name] = pick(g, -1, 0, 1, 1.5)
	case "multipleOf":
		s[name] = pick(g, 0.1, 0.5, 1, 2)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		s[name] = pick(g, 0.0, 1, 2, 3)
	case "pattern":
		s[name] = pick(g, "a", "^a", "^$", ".{2}")
	case "uniqueItems":
		s[name] = g.IntN(4) > 0
	case "required":
		s[name] = pick(g, []string{"a"}, []string{"a", "b"}, []string{}, []string{"a/b"})
	case "$ref":
		s[name] = pick(g, "#/$defs/x", "#/definitions/x", "#", "other", "schema:/other", fmt.Sprintf("#/$defs/%s", g.name()))
	case "format":
		s[name] = pick(g, "date", "ipv4", "email", "nosuch")
	case "properties":
		s[name] = g.named(depth, g.name)
	case "patternProperties":
		s[name] = g.named(depth, func() string { return pick(g, "a", "b$", "^c", "") })
	case "prefixItems", "allOf", "anyOf", "oneOf":
		s[name] = g.schemas(depth)
	case "items":
		if s[name] = g.schema(depth); g.draft == 7 && g.IntN(2) == 0 {
			s[name] = g.schemas(depth)
			s["additionalItems"] = g.schema(depth)
		}
	case "if":
		s["if"], s["then"], s["else"] = g.schema(depth), g.schema(depth), g.schema(depth)
	default:
		s[name] = g.schema(depth)
	}
}
