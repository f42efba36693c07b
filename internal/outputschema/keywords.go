package outputschema

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// keywords reads the keywords of a schema, and makes its rules.
type keywords struct {
	*compiler
	at *place
}

// refused are the keywords that say what is valid, and that few callers write. The others that it does not know say nothing.
var refused = []string{
	"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "contains", "dependencies", "dependentRequired",
	"dependentSchemas",
	"unevaluatedItems", "unevaluatedProperties",
}

// compile makes the rules.
func (k *keywords) compile() {
	if name := k.member("$schema"); name != nil && (k.draft == 0 || draftOf(name.value) != k.draft) {
		k.fail(name, "want the address of draft 2020-12 or 07, the same in the whole schema")
	}
	for _, name := range refused {
		if at := k.member(name); at != nil {
			k.fail(at, "%s is not supported", name)
		}
	}
	if id := k.member("$id"); id != nil && k.at != k.root {
		k.fail(id, "$id is supported at the top of a schema only")
	}
	// Schemas that only references use.
	k.schemaMap("definitions")
	k.schemaMap("$defs")
	k.kind()
	k.reference()
	k.choice()
	k.number()
	k.string()
	k.array()
	k.object()
	k.logic()
}

// rule adds a rule.
func (k *keywords) rule(r rule) { k.at.node.rules = append(k.at.node.rules, r) }

// member returns the place of a keyword, nil if the schema does not have it.
func (k *keywords) member(name string) *place { return k.at.child(name) }

// read returns the value of a keyword if the schema has it with the right type.
func read[T any](k *keywords, name, want string) (value T, ok bool) {
	at := k.member(name)
	if at == nil {
		return value, false
	}
	if value, ok = at.value.(T); !ok {
		k.fail(at, "got %s, want %s", kindOf(at.value), want)
	}
	return value, ok
}

func (k *keywords) text(name string) (string, bool) { return read[string](k, name, "string") }
func (k *keywords) flag(name string) (is bool)      { is, _ = read[bool](k, name, "boolean"); return is }
func (k *keywords) list(name string) ([]any, bool)  { return read[[]any](k, name, "array") }

// count returns a number of things.
func (k *keywords) count(name string) (float64, bool) {
	n, ok := read[float64](k, name, "number")
	if ok && (n < 0 || n != math.Trunc(n)) {
		k.fail(k.member(name), "got %v, want a whole number, 0 or more", n)
	}
	return n, ok
}

// strings returns a list of different texts.
func (k *keywords) strings(at *place) []string {
	items, ok := at.value.([]any)
	if !ok {
		k.fail(at, "got %s, want array", kindOf(at.value))
	}
	all := make([]string, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		if all[i], ok = item.(string); !ok || seen[all[i]] {
			k.fail(at, "want an array of different strings")
		}
		seen[all[i]] = true
	}
	return all
}

// schema returns the schema of a keyword, nil without one.
func (k *keywords) schema(name string) *node {
	if at := k.member(name); at != nil {
		return k.compiler.schema(at)
	}
	return nil
}

// schemaList returns the schemas in the array of a keyword.
func (k *keywords) schemaList(name string) []*node {
	items, ok := k.list(name)
	if ok && len(items) == 0 {
		k.fail(k.member(name), "want an array that is not empty")
	}
	all := make([]*node, len(items))
	for i := range items {
		all[i] = k.compiler.schema(k.member(name).child(strconv.Itoa(i)))
	}
	return all
}

// members calls f with the members of the object of a keyword, sorted by name.
func (k *keywords) members(name string, f func(name string, at *place)) {
	object, _ := read[map[string]any](k, name, "object")
	for _, member := range slices.Sorted(maps.Keys(object)) {
		f(member, k.member(name).child(member))
	}
}

// schemaMap returns the schemas in the object of a keyword.
func (k *keywords) schemaMap(name string) map[string]*node {
	all := map[string]*node{}
	k.members(name, func(name string, at *place) { all[name] = k.compiler.schema(at) })
	return all
}

// pattern returns a compiled regular expression.
func (k *keywords) pattern(at *place, text string) *pattern {
	if k.patterns += len(text); k.patterns > maxPatterns {
		k.fail(at, "the patterns have more than %d bytes together", maxPatterns)
		return nil
	}
	p, err := newPattern(text)
	if err != nil {
		k.fail(at, "the pattern is not valid: %v", err)
	}
	return p
}
