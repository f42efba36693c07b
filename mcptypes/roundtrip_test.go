package mcptypes_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	roundTrips = flag.Int("roundtrips", 5000, "the `number` of random round trips")
	seed       = flag.Uint64("seed", 1, "the `seed` of the random round trips")
)

// TestRoundTrips makes random instances of the schema, decodes and encodes
// them, and has an independent validator judge what comes out.
func TestRoundTrips(t *testing.T) {
	s := readSchema(t)
	names := slices.Sorted(maps.Keys(definitions))
	random := &instances{schema: s, Rand: rand.New(rand.NewPCG(*seed, 0))}
	for i := range *roundTrips {
		name := names[i%len(names)]
		in := random.text(s.definitions[name], 0)
		if err := s.judge(name, in); err != nil {
			t.Fatalf("the instance made for %s is invalid: %s: %v", name, in, err)
		}
		p := definitions[name]()
		if err := decodeStrict([]byte(in), p); err != nil {
			t.Fatalf("%s %s: %v", name, in, err)
		}
		v := p
		if elem := reflect.ValueOf(p).Elem(); elem.Kind() == reflect.Interface {
			v = elem.Interface()
		}
		out, err := encode(v)
		if err != nil {
			t.Fatalf("%s %s: encode: %v", name, in, err)
		}
		if err := s.judge(name, string(out)); err != nil {
			t.Fatalf("%s %s became %s: %v", name, in, out, err)
		}
		if !sameValue(parse(t, in), parse(t, string(out))) {
			t.Fatalf("%s %s became %s", name, in, out)
		}
	}
}

// schema is a schema with its judge.
type schema struct {
	definitions map[string]map[string]any
	validators  map[string]*jsonschema.Schema
}

func readSchema(t testing.TB) *schema {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for _, name := range []string{"uri", "uri-template"} { // formats are not asserted
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s := &schema{definitions: make(map[string]map[string]any), validators: make(map[string]*jsonschema.Schema)}
	for name := range definitions {
		s.definitions[name] = doc.(map[string]any)["definitions"].(map[string]any)[name].(map[string]any)
		if s.validators[name], err = c.Compile("schema.json#/definitions/" + name); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// judge validates text as an instance of a definition.
func (s *schema) judge(name, text string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.validators[name].Validate(v)
}

// instances makes random instances of schemas, as JSON text.
type instances struct {
	*schema
	*rand.Rand
}

func (r *instances) text(node map[string]any, depth int) string {
	if ref, ok := node["$ref"].(string); ok {
		return r.text(r.definitions[ref[strings.LastIndex(ref, "/")+1:]], depth)
	}
	if arms, ok := node["anyOf"].([]any); ok {
		return r.text(arms[r.IntN(len(arms))].(map[string]any), depth)
	}
	if c, ok := node["const"]; ok {
		return quote(c.(string))
	}
	if values, ok := node["enum"].([]any); ok {
		return quote(values[r.IntN(len(values))].(string))
	}
	kind, _ := node["type"].(string)
	if kinds, ok := node["type"].([]any); ok {
		kind = kinds[r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "string":
		return r.string()
	case "boolean":
		return strconv.FormatBool(r.IntN(2) == 0)
	case "integer":
		return r.integer()
	case "number":
		return r.number(node)
	case "array":
		var elems []string
		for range r.IntN(4) {
			elems = append(elems, r.text(node["items"].(map[string]any), depth+1))
		}
		return "[" + strings.Join(elems, ",") + "]"
	case "object":
		return r.object(node, depth)
	}
	return r.any(depth)
}

func (r *instances) object(node map[string]any, depth int) string {
	var members []string
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || r.IntN(1+depth/2) == 0 {
			members = append(members, quote(name)+":"+r.text(properties[name].(map[string]any), depth+1))
		}
	}
	rest, _ := node["additionalProperties"].(map[string]any)
	for i := range r.IntN(3) {
		name := fmt.Sprintf("x-%d%s", i, r.word())
		if rest != nil {
			members = append(members, quote(name)+":"+r.text(rest, depth+1))
		} else {
			members = append(members, quote(name)+":"+r.any(depth))
		}
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// any makes a free-form value.
func (r *instances) any(depth int) string {
	switch n := r.IntN(8); {
	case n == 0:
		return "null"
	case n == 1:
		return "true"
	case n == 2:
		return "1" + strconv.FormatUint(r.Uint64(), 10) + "0000000000001"
	case n == 3:
		return strconv.FormatFloat(r.NormFloat64(), 'e', -1, 64)
	case n == 4 && depth < 6:
		return "[" + r.any(depth+1) + "," + r.any(depth+1) + "]"
	case n == 5 && depth < 6:
		return "{" + quote(r.word()) + ":" + r.any(depth+1) + "}"
	}
	return r.string()
}

func (r *instances) integer() string {
	return []string{
		"0", "-1", "1.0", "2e3", "9007199254740993",
		strconv.Itoa(math.MaxInt64), strconv.Itoa(math.MinInt64),
		strconv.FormatInt(r.Int64()>>r.IntN(64), 10),
	}[r.IntN(8)]
}

func (r *instances) number(node map[string]any) string {
	bound := func(key string) (float64, bool) {
		n, ok := node[key].(json.Number)
		f, err := n.Float64()
		return f, ok && err == nil
	}
	low, ok1 := bound("minimum")
	high, ok2 := bound("maximum")
	if ok1 && ok2 {
		return strconv.FormatFloat(low+(high-low)*float64(r.IntN(5))/4, 'g', -1, 64)
	}
	return strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(40)-20)), 'g', -1, 64)
}

func (r *instances) word() string {
	return []string{"", "a", "name", "été", "日本", "😀", "~/", "\"\\", "\n\t\x01", "\u2028<&>"}[r.IntN(10)]
}

func (r *instances) string() string {
	s := quote(r.word() + r.word() + r.word())
	if r.IntN(4) == 0 {
		s = `"\u0041` + s[1:]
	}
	return s
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func parse(t testing.TB, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// sameValue compares JSON values, numbers by exact value.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
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
