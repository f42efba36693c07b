package outputschema

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the keyword type.
func (k *keywords) kind() {
	at := k.member("type")
	if at == nil {
		return
	}
	var want []string
	if name, ok := at.value.(string); ok {
		want = []string{name}
	} else if want = k.strings(at); len(want) == 0 {
		k.fail(at, "want an array that is not empty")
	}
	for _, name := range want {
		if !slices.Contains(kinds, name) {
			k.fail(at, "got %q, want one of %s", clip(name), strings.Join(kinds, ", "))
		}
	}
	k.rule(func(_ *run, value any) *FaultError {
		got := kindOf(value)
		if slices.Contains(want, got) {
			return nil
		}
		if n, ok := value.(float64); ok && n == math.Trunc(n) && slices.Contains(want, "integer") {
			return nil
		}
		return fault("got %s, want %s", got, strings.Join(want, " or "))
	})
}

// choice is the keywords enum and const.
func (k *keywords) choice() {
	if list, ok := k.list("enum"); ok {
		k.oneOfValues(list)
	}
	if at := k.member("const"); at != nil {
		k.oneOfValues([]any{at.value})
	}
}

func (k *keywords) oneOfValues(list []any) {
	keys := map[string]bool{}
	var words []string
	for _, value := range list {
		key := keyOf(value)
		keys[key] = true
		words = append(words, clip(key))
	}
	why := "value must be " + strings.Join(words, ", ")
	if len(words) > 1 {
		why = "value must be one of " + strings.Join(words, ", ")
	}
	why = brief(why)
	k.rule(func(r *run, value any) *FaultError {
		if keys[r.key(value)] {
			return nil
		}
		return &FaultError{Why: why}
	})
}

// number is the keywords for numbers.
func (k *keywords) number() {
	k.bound("minimum", "at least", func(got, want float64) bool { return got >= want })
	k.bound("maximum", "at most", func(got, want float64) bool { return got <= want })
	k.bound("exclusiveMinimum", "more than", func(got, want float64) bool { return got > want })
	k.bound("exclusiveMaximum", "less than", func(got, want float64) bool { return got < want })
	if of, ok := read[float64](k, "multipleOf", "number"); ok {
		if of <= 0 {
			k.fail(k.member("multipleOf"), "got %v, want more than 0", of)
			return
		}
		divisor := exact(of)
		k.rule(func(r *run, value any) *FaultError {
			n, ok := value.(float64)
			if !ok {
				return nil
			}
			r.take(20 * visitCost)
			if !new(big.Rat).Quo(exact(n), divisor).IsInt() {
				return fault("got %v, want a multiple of %v", n, of)
			}
			return nil
		})
	}
}

// exact returns the shortest decimal that reads as n, which is what its author wrote.
func exact(n float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(n, 'g', -1, 64))
	return r
}

func (k *keywords) bound(name, words string, fits func(got, want float64) bool) {
	want, ok := read[float64](k, name, "number")
	if !ok {
		return
	}
	k.rule(func(_ *run, value any) *FaultError {
		if got, ok := value.(float64); ok && !fits(got, want) {
			return fault("got %v, want %s %v", got, words, want)
		}
		return nil
	})
}

// size is two keywords that bound a length; length returns -1 for a value without one.
func (k *keywords) size(least, most, things string, length func(r *run, value any) int) {
	low, hasLow := k.count(least)
	high, hasHigh := k.count(most)
	if !hasLow && !hasHigh {
		return
	}
	k.rule(func(r *run, value any) *FaultError {
		switch n := length(r, value); {
		case n < 0:
		case hasLow && float64(n) < low:
			return fault("it has %d %s, want at least %.0f", n, things, low)
		case hasHigh && float64(n) > high:
			return fault("it has %d %s, want at most %.0f", n, things, high)
		}
		return nil
	})
}

// string is the keywords for strings.
func (k *keywords) string() {
	k.size("minLength", "maxLength", "characters", func(r *run, value any) int {
		text, ok := value.(string)
		if !ok {
			return -1
		}
		r.take(len(text))
		return utf8.RuneCountInString(text)
	})
	if text, ok := k.text("pattern"); ok {
		p := k.pattern(k.member("pattern"), text)
		k.rule(func(r *run, value any) *FaultError {
			if got, ok := value.(string); ok && !p.match(r, got) {
				return fault("'%s' does not match pattern '%s'", clip(got), clip(text))
			}
			return nil
		})
	}
}

// array is the keywords for arrays.
func (k *keywords) array() {
	k.size("minItems", "maxItems", "items", func(_ *run, value any) int {
		if items, ok := value.([]any); ok {
			return len(items)
		}
		return -1
	})
	if k.flag("uniqueItems") {
		k.rule(unique)
	}
	k.items()
}

func unique(r *run, value any) *FaultError {
	items, _ := value.([]any)
	seen := map[string]int{}
	for i, item := range items {
		key := r.key(item)
		if first, ok := seen[key]; ok {
			return fault("items at %d and %d are equal", first, i)
		}
		r.take(entryCost)
		seen[key] = i
	}
	return nil
}

// items is the keywords items, prefixItems and additionalItems.
func (k *keywords) items() {
	var first []*node
	var rest *node
	switch {
	case k.draft == 2020:
		first, rest = k.schemaList("prefixItems"), k.schema("items")
	case k.member("items") == nil || kindOf(k.member("items").value) != "array":
		k.schema("additionalItems") // has no effect
		rest = k.schema("items")
	default:
		first, rest = k.schemaList("items"), k.schema("additionalItems")
	}
	if first == nil && rest == nil {
		return
	}
	k.rule(func(r *run, value any) *FaultError {
		items, _ := value.([]any)
		for i, item := range items {
			schema := rest
			if i < len(first) {
				schema = first[i]
			}
			if schema == nil {
				break
			}
			if schema.never {
				return fault("it has %d items, want at most %d", len(items), i)
			}
			if f := r.visit(schema, item); f != nil {
				return f.below(strconv.Itoa(i))
			}
		}
		return nil
	})
}
