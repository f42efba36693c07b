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
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	roundTrips = flag.Int("roundtrips", 2000, "the `number` of random round trips for each schema file")
	seed       = flag.Uint64("seed", 1, "their `seed`")
)

// TestRoundTrips makes random instances of the schema, decodes and encodes them, and checks
// the output with an independent validator.
func TestRoundTrips(t *testing.T) {
	eachInstance(t, func(t *testing.T, r *instances, name string) {
		in := r.of(name)
		if err := r.judge(name, in); err != nil {
			t.Fatalf("the instance made for %s is invalid: %s: %v", name, in, err)
		}
		p := definitions[name]()
		if err := decodeStrict([]byte(in), p); err != nil {
			t.Fatalf("%s %s: %v", name, in, err)
		}
		out, err := encode(value(p))
		if err != nil {
			t.Fatalf("%s %s: encode: %v", name, in, err)
		}
		if err := r.judge(name, string(out)); err != nil {
			t.Fatalf("%s %s became %s: %v", name, in, out, err)
		}
		if !sameValue(parse(t, in), parse(t, string(out))) {
			t.Fatalf("%s %s became %s", name, in, out)
		}
	})
}

// TestVerdicts changes random instances in one place and compares the verdict of
// DecodeStrict with the validator's. The ledger may excuse the refusal of a valid instance,
// but never the acceptance of an invalid one.
func TestVerdicts(t *testing.T) {
	ledger := readLedger(t)
	var valid, invalid, excused int
	eachInstance(t, func(t *testing.T, r *instances, name string) {
		tree, kind := r.mutant(parse(t, r.of(name)))
		in, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		strict, judged := decodeStrict(in, definitions[name]()), r.judge(name, string(in))
		switch {
		case strict == nil && judged == nil:
			valid++
		case strict != nil && judged != nil:
			invalid++
		case strict == nil:
			t.Errorf("%s %s: accepted, but invalid: %v", name, in, judged)
		default:
			excused++
			if ledger.excuses("refused", example{Def: name, Kind: "mutant-still-valid:" + kind}, pathOf(strict)) == "" {
				t.Errorf("%s %s %s: valid, but refused: %v", name, kind, in, strict)
			}
		}
		if err := decode(in, definitions[name]()); strict == nil && err != nil {
			t.Errorf("%s %s: strict accepts what Decode refuses: %v", name, in, err)
		}
	})
	t.Logf("%d valid, %d invalid, %d excused by the ledger", valid, invalid, excused)
}

// eachInstance calls f for the definitions of each schema file in turn. The flag sets how
// often for each file.
func eachInstance(t *testing.T, f func(t *testing.T, r *instances, name string)) {
	s := readSchema(t)
	for _, file := range schemaFiles {
		t.Run(path.Base(file), func(t *testing.T) {
			r := &instances{schema: s, Rand: rand.New(rand.NewPCG(*seed, 0))}
			names := s.names[file]
			for i := range *roundTrips {
				f(t, r, names[i%len(names)])
			}
		})
	}
}

// value returns *p for a union, and p otherwise. p comes from the table of definitions.
func value(p any) any {
	if v := reflect.ValueOf(p).Elem(); v.Kind() == reflect.Interface {
		return v.Interface()
	}
	return p
}

// schema is a schema with its extensions, and a validator for it.
type schema struct {
	definitions map[string]map[string]any
	validators  map[string]*jsonschema.Schema
	names       map[string][]string // of the definitions that each file adds, sorted
}

func readSchema(t testing.TB) *schema {
	s := &schema{
		definitions: make(map[string]map[string]any),
		validators:  make(map[string]*jsonschema.Schema),
		names:       make(map[string][]string),
	}
	for _, file := range schemaFiles {
		s.read(t, file)
	}
	for name := range definitions {
		if s.validators[name] == nil {
			t.Fatalf("no schema defines %s", name)
		}
	}
	return s
}

// read adds the definitions of a schema file that no earlier file had.
func (s *schema) read(t testing.TB, file string) {
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
	added := root[key].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if s.definitions[name] != nil {
			continue
		}
		s.names[file] = append(s.names[file], name)
		s.definitions[name] = added[name].(map[string]any)
		if s.validators[name], err = c.Compile(file + "#/" + key + "/" + name); err != nil {
			t.Fatal(err)
		}
	}
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

// of makes an instance of a definition.
func (r *instances) of(name string) string { return r.text(r.definitions[name], 0) }

const deep = 8 // the depth below which choices take their last, simplest arm

func (r *instances) text(node map[string]any, depth int) string {
	if ref, ok := node["$ref"].(string); ok {
		return r.text(r.definitions[path.Base(ref)], depth)
	}
	if node["allOf"] != nil || node["anyOf"] != nil && node["properties"] != nil {
		return r.join(r.members(node, depth))
	}
	if arms, ok := node["anyOf"].([]any); ok {
		arm := len(arms) - 1
		if depth < deep {
			arm = r.IntN(len(arms))
		}
		return r.text(arms[arm].(map[string]any), depth+1)
	}
	if c, ok := node["const"]; ok {
		return literal(c)
	}
	if values, ok := node["enum"].([]any); ok {
		return literal(values[r.IntN(len(values))])
	}
	kind, _ := node["type"].(string)
	if kinds, ok := node["type"].([]any); ok {
		kind = kinds[r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "null":
		return "null"
	case "string":
		return r.string()
	case "boolean":
		return strconv.FormatBool(r.IntN(2) == 0)
	case "integer":
		return r.integer(node)
	case "number":
		return r.number(node)
	case "array":
		var elems []string
		for range r.IntN(4) {
			elems = append(elems, r.text(node["items"].(map[string]any), depth+1))
		}
		return "[" + strings.Join(elems, ",") + "]"
	case "object":
		return r.join(r.members(node, depth))
	}
	return r.any(depth)
}

// members makes the members of an object that satisfies all of several schemas. A later
// schema of a member refines an earlier one.
func (r *instances) members(node map[string]any, depth int) map[string]string {
	if ref, ok := node["$ref"].(string); ok {
		return r.members(r.definitions[path.Base(ref)], depth)
	}
	members := make(map[string]string)
	if parts, ok := node["allOf"].([]any); ok {
		for _, part := range parts {
			for name, text := range r.members(part.(map[string]any), depth) {
				if members[name] == "" || !strings.HasPrefix(name, "x-") {
					members[name] = text
				}
			}
		}
		return members
	}
	if arms, ok := node["anyOf"].([]any); ok {
		return r.members(arms[r.IntN(len(arms))].(map[string]any), depth)
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || r.IntN(1+depth/2) == 0 {
			members[name] = r.text(properties[name].(map[string]any), depth+1)
		}
	}
	rest, isSchema := node["additionalProperties"].(map[string]any)
	if isSchema && rest["not"] != nil || node["additionalProperties"] == false {
		return members
	}
	for i := range r.IntN(3) {
		name := fmt.Sprintf("x-%d%s", i, r.word())
		if isSchema {
			members[name] = r.text(rest, depth+1)
		} else {
			members[name] = r.any(depth)
		}
	}
	return members
}

// join makes an object of members, in random order.
func (r *instances) join(members map[string]string) string {
	list := make([]string, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, quote(name)+":"+members[name])
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return "{" + strings.Join(list, ",") + "}"
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

// bound returns a limit of a number.
func bound(node map[string]any, key string) (float64, bool) {
	n, ok := node[key].(json.Number)
	f, err := n.Float64()
	return f, ok && err == nil
}

func (r *instances) integer(node map[string]any) string {
	low, ok1 := bound(node, "minimum")
	high, ok2 := bound(node, "maximum")
	if ok1 || ok2 {
		if !ok2 {
			high = 1 << 53
		}
		return []string{
			strconv.FormatInt(int64(low), 10), strconv.FormatInt(int64(high), 10), "1.0", "2e3", "7",
		}[r.IntN(5)]
	}
	return []string{
		"0", "-1", "1.0", "2e3", "9007199254740993",
		strconv.Itoa(math.MaxInt64), strconv.Itoa(math.MinInt64),
		strconv.FormatInt(r.Int64()>>r.IntN(64), 10),
	}[r.IntN(8)]
}

func (r *instances) number(node map[string]any) string {
	low, ok1 := bound(node, "minimum")
	high, ok2 := bound(node, "maximum")
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

// mutant returns v changed in one place, and a description of the change.
func (r *instances) mutant(v any) (mutant any, kind string) {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || r.IntN(5) == 0 {
			break
		}
		name := names[r.IntN(len(names))]
		switch r.IntN(6) {
		case 0:
			delete(v, name)
			return v, "missing"
		case 1:
			if other := strings.ToUpper(name); v[other] == nil {
				v[other] = "x"
				return v, "case-variant"
			}
		}
		v[name], kind = r.mutant(v[name])
		return v, kind
	case []any:
		if len(v) == 0 || r.IntN(5) == 0 {
			break
		}
		i := r.IntN(len(v))
		v[i], kind = r.mutant(v[i])
		return v, kind
	}
	other := []any{nil, true, json.Number("7"), json.Number("-1.5"), "x", "", "2.0", []any{}, map[string]any{}}
	return other[r.IntN(len(other))], "type"
}

func literal(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	return fmt.Sprint(v)
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
