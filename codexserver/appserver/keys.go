package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keys are configuration keys of Codex as nested tables, as Codex merges them: a value that is no table is a
// [stdjson.RawMessage]. No function changes a table that it was given.
type keys map[string]any

// parse reads keys, whose names may have dots between those of tables.
func parse(dotted map[string]stdjson.RawMessage) (keys, error) {
	k := keys{}
	for _, name := range slices.Sorted(maps.Keys(dotted)) {
		v, err := tables(dotted[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		k = k.with(at(v, strings.Split(name, ".")...))
	}
	return k, nil
}

// tables reads a JSON value.
func tables(raw stdjson.RawMessage) (any, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return raw, nil
	}
	var members map[string]stdjson.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	k := keys{}
	for name, member := range members {
		v, err := tables(member)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		k[name] = v
	}
	return k, nil
}

// keysOf returns nested tables of Go as keys.
func keysOf(tables map[string]any) (keys, error) {
	dotted := map[string]stdjson.RawMessage{}
	for name, v := range tables {
		raw, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		dotted[name] = raw
	}
	return parse(dotted)
}

// at returns keys with one value. A value that is not keys becomes JSON; it must have such a form.
func at(v any, path ...string) keys {
	if _, ok := v.(keys); !ok {
		raw, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			raw = []byte("null")
		}
		v = stdjson.RawMessage(raw)
	}
	for _, name := range slices.Backward(path) {
		v = keys{name: v}
	}
	return v.(keys)
}

// with returns k with other keys in it, which win. Null says nothing about a table.
func (k keys) with(others keys) keys {
	all := maps.Clone(k)
	if all == nil {
		all = keys{}
	}
	for name, v := range others {
		was, isTable := all[name].(keys)
		if below, ok := v.(keys); ok {
			v = was.with(below)
		} else if raw, ok := v.(stdjson.RawMessage); ok && isTable && string(raw) == "null" {
			continue
		}
		all[name] = v
	}
	return all
}

// without returns k without other keys, whatever their values.
func (k keys) without(others keys) keys {
	rest := maps.Clone(k)
	for name, v := range others {
		was, ok := rest[name].(keys)
		if below, both := v.(keys); ok && both {
			if left := was.without(below); len(left) > 0 {
				rest[name] = left
				continue
			}
		}
		delete(rest, name)
	}
	return rest
}

// find returns a value, nil if it is missing.
func (k keys) find(path ...string) any {
	last := len(path) - 1
	for _, name := range path[:last] {
		k, _ = k[name].(keys)
	}
	return k[path[last]]
}

// table returns a table, nil if there is none.
func (k keys) table(path ...string) keys {
	below, _ := k.find(path...).(keys)
	return below
}

// text returns a value as JSON, nil if it is missing or null.
func (k keys) text(path ...string) stdjson.RawMessage {
	v := k.find(path...)
	if raw, ok := v.(stdjson.RawMessage); v == nil || ok && string(raw) == "null" {
		return nil
	}
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil // it was read from JSON
	}
	return stdjson.RawMessage(raw)
}

// read decodes a value, if there is one.
func (k keys) read(to any, path ...string) error {
	raw := k.text(path...)
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, to)
}

// get returns a value, zero if it is missing or of another type.
func get[T any](k keys, path ...string) (v T) {
	var p *T
	if k.read(&p, path...) == nil && p != nil {
		v = *p
	}
	return v
}

// dotted returns the values with the names of their tables, as Codex takes them. A table stays one value if it
// is empty or a name in it has a dot or a quote.
func (k keys) dotted() map[string]stdjson.RawMessage {
	all := map[string]stdjson.RawMessage{}
	for name, v := range k {
		below, _ := v.(keys)
		if len(below) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(below)), func(n string) bool { return strings.ContainsAny(n, `."`) }) {
			all[name], _ = json.Marshal(v, json.Deterministic(true)) // it was read from JSON
			continue
		}
		for rest, raw := range below.dotted() {
			all[name+"."+rest] = raw
		}
	}
	return all
}
