package appserver

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keys are configuration keys of Codex as nested tables, as Codex merges them. Other values are those of
// encoding/json, numbers as in the text. No function changes a table that it was given.
type keys map[string]any

// exact leaves numbers as they are: a float has not each integer.
func exact() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		number, err := d.ReadValue()
		*v = number.Clone()
		return err
	}))
}

// parse reads keys, whose names may have dots between those of tables.
func parse(dotted map[string]stdjson.RawMessage) (keys, error) {
	values := map[string]any{}
	for name, raw := range dotted {
		var v any
		if err := json.Unmarshal(raw, &v, exact()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = v
	}
	return keysOf(values), nil
}

// keysOf returns values as keys, whose names may have dots between those of tables.
func keysOf(values map[string]any) keys {
	k := keys{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		k = k.with(at(tables(values[name]), strings.Split(name, ".")...))
	}
	return k
}

// tables returns a value whose tables are keys.
func tables(v any) any {
	members, is := v.(map[string]any)
	if !is {
		return v
	}
	k := keys{}
	for name, member := range members {
		k[name] = tables(member)
	}
	return k
}

// at returns keys with one value.
func at(v any, path ...string) keys {
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
		} else if v == nil && isTable {
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
	if v := k.find(path...); v != nil {
		return marshal(v)
	}
	return nil
}

// marshal returns a value as JSON, nil for one that has no such form.
func marshal(v any) stdjson.RawMessage {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil
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
			all[name] = marshal(v)
			continue
		}
		for rest, raw := range below.dotted() {
			all[name+"."+rest] = raw
		}
	}
	return all
}
