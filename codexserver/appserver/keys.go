package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keys are configuration keys of Codex as nested tables, as Codex merges them. Values are those of
// encoding/json. No function changes a table that it was given.
type keys map[string]any

// tableOf returns a value that is a table, else nil.
func tableOf(v any) keys {
	table, _ := v.(map[string]any)
	return table
}

// at returns keys with one value.
func at(v any, path ...string) keys { return config.Nest(v, path...) }

// with returns k with other keys in it, which win.
func (k keys) with(others keys) keys {
	all := maps.Clone(k)
	if all == nil {
		all = keys{}
	}
	config.Merge(all, others)
	return all
}

// without returns k without other keys, whatever their values.
func (k keys) without(others keys) keys {
	rest := maps.Clone(k)
	for name, v := range others {
		delete(rest, name)
		if below := tableOf(v); below != nil {
			if left := tableOf(k[name]).without(below); len(left) > 0 {
				rest[name] = map[string]any(left)
			}
		}
	}
	return rest
}

// table returns a table, nil if there is none.
func (k keys) table(path ...string) keys { return tableOf(config.At(k, path...)) }

// text returns a value as JSON, nil if it is missing or null. What has no such form, such as nan, is another text.
func (k keys) text(path ...string) stdjson.RawMessage {
	v := config.At(k, path...)
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // raw ends there, and would hide what follows
		return fmt.Append(nil, v)
	}
	return raw
}

// read decodes a value, if there is one.
func (k keys) read(to any, path ...string) error {
	raw := k.text(path...)
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, to)
}

// take reads a value and takes its key away, unless it has another type.
func (k keys) take(to any, name string) error {
	err := k.read(to, name)
	if err == nil {
		delete(k, name)
	}
	return err
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
func (k keys) dotted() map[string]any {
	all := map[string]any{}
	for name, v := range k {
		below := tableOf(v)
		if len(below) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(below)),
			func(n string) bool { return strings.ContainsAny(n, `."'`) }) {
			all[name] = v
			continue
		}
		for rest, value := range below.dotted() {
			all[name+"."+rest] = value
		}
	}
	return all
}
