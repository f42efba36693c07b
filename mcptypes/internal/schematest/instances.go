package schematest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// instances makes random instances of schemas, as JSON text.
type instances struct {
	*schema
	*rand.Rand
	left int // values that the instance may have before it takes only what it must
}

// valid makes an instance of a definition that its validator accepts. It fails for a schema
// whose assertions random values rarely satisfy.
func (r *instances) valid(name string) (text string, ok bool) {
	for range 20 {
		r.left = 2000
		text = r.text(r.definitions[name], 0)
		if r.judge(name, text) == nil {
			return text, true
		}
	}
	return text, false
}

const deep = 8 // the depth below which choices take a simple arm

// choice returns the arms of a choice, or nil.
func choice(node map[string]any) []any {
	arms, _ := node["anyOf"].([]any)
	return arms
}

// pick returns one of the arms.
func (r *instances) pick(arms []any, depth int) any {
	if depth < deep {
		return arms[r.IntN(len(arms))]
	}
	for _, a := range arms {
		arm, _ := a.(map[string]any)
		if kind, ok := arm["type"].(string); ok && kind != "object" && kind != "array" || arm["const"] != nil ||
			arm["enum"] != nil {
			return a
		}
	}
	return arms[len(arms)-1]
}

func (r *instances) text(schema any, depth int) string {
	if r.left--; r.left < 0 { // a schema of schemas contains itself in many places
		depth = max(depth, 2*deep+4)
	}
	node, ok := schema.(map[string]any)
	if !ok {
		return r.any(depth)
	}
	if ref, ok := node["$ref"].(string); ok {
		return r.text(r.at(ref), depth)
	}
	arms := choice(node)
	if parts, ok := node["allOf"].([]any); ok && len(parts) == 1 && node["properties"] == nil && arms == nil {
		return r.text(parts[0], depth)
	}
	if node["allOf"] != nil || arms != nil && (node["properties"] != nil || node["required"] != nil) {
		return r.join(r.members(node, depth))
	}
	if arms != nil {
		return r.text(r.pick(arms, depth), depth+1)
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
		for range min(r.IntN(4), max(0, deep+4-depth)) {
			elems = append(elems, r.text(node["items"], depth+1))
		}
		return "[" + strings.Join(elems, ",") + "]"
	case "object":
		return r.join(r.members(node, depth))
	}
	return r.any(depth)
}

// members makes the members of an object that satisfies all of several schemas. A later
// schema of a member refines an earlier one.
func (r *instances) members(schema any, depth int) map[string]string {
	node, _ := schema.(map[string]any)
	if ref, ok := node["$ref"].(string); ok {
		return r.members(r.at(ref), depth)
	}
	members := make(map[string]string)
	parts, _ := node["allOf"].([]any)
	if arms := choice(node); arms != nil {
		parts = append(slices.Clone(parts), r.pick(arms, depth))
	}
	for _, part := range parts {
		for name, text := range r.members(part, depth) {
			if members[name] == "" || !strings.HasPrefix(name, "x-") {
				members[name] = text
			}
		}
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || r.IntN(1+depth/2) == 0 && properties[name] != false &&
			depth < 2*deep {
			members[name] = r.text(properties[name], depth+1)
		}
	}
	for _, name := range required {
		if text := name.(string); members[text] == "" {
			members[text] = r.text(node["additionalProperties"], depth+1)
		}
	}
	if node["properties"] == nil && node["type"] == nil {
		return members // a part that only adds something
	}
	rest, isSchema := node["additionalProperties"].(map[string]any)
	if isSchema && rest["not"] != nil || node["additionalProperties"] == false {
		return members
	}
	for i := range r.IntN(3) {
		name := fmt.Sprintf("x-%d%s", i, r.word())
		if isSchema && depth < 2*deep {
			members[name] = r.text(rest, depth+1)
		} else if !isSchema {
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

// literal returns a value as JSON.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
