package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// definitionsAs returns the definitions of a schema, whose references name those of the container key.
func definitionsAs(key string, text []byte) (map[string]any, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	own, definitions := definitionsOf(tree)
	if own == key {
		return definitions, nil
	}
	renamed := make(map[string]any)
	err := json.Unmarshal([]byte(strings.ReplaceAll(compact(definitions), `"#/`+own+`/`, `"#/`+key+`/`)), &renamed)
	return renamed, err
}

// equal reports whether two definitions differ only in prose and in the order of lists.
func equal(a, b any) bool { return reflect.DeepEqual(normal(a), normal(b)) }

// follow returns the extensions, by file name, whose copies of the old schema's definitions differ from
// the new schema. A copy becomes the new definition, and goes away with it. An extension that needs a
// definition which neither it nor the new schema has is an error.
func (r refresher) follow(old, stripped []byte) (map[string][]byte, error) {
	followed := make(map[string][]byte)
	for _, name := range r.extensions {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var tree any
		if err := json.Unmarshal(text, &tree); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		key, definitions := definitionsOf(tree)
		was, err := definitionsAs(key, old)
		if err != nil {
			return nil, err
		}
		is, err := definitionsAs(key, stripped)
		if err != nil {
			return nil, err
		}
		lines := followCopies(definitions, was, is)
		if len(lines) == 0 {
			continue
		}
		for _, owner := range slices.Sorted(maps.Keys(definitions)) {
			for _, ref := range refsOf(definitions[owner]) {
				if definitions[ref] == nil {
					return nil, fmt.Errorf("#/%s/%s of %s refers to %s, which the new schema does not have", key, owner, filepath.Base(name), ref)
				}
			}
		}
		if text, err = formatSchema(tree); err != nil {
			return nil, err
		}
		followed[filepath.Base(name)] = text
		r.list("copies in "+filepath.Base(name), lines)
	}
	return followed, nil
}

// followCopies changes an extension's copies of definitions from what a schema was to what it is. It
// adds the definitions that they refer to.
func followCopies(definitions, was, is map[string]any) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		switch copied := definitions[name]; {
		case was[name] == nil || !equal(copied, was[name]): // the extension's own
		case is[name] == nil:
			delete(definitions, name)
			lines = append(lines, "- "+name)
		case !equal(copied, is[name]):
			definitions[name] = strip(is[name])
			lines = append(lines, "~ "+name)
		}
	}
	for queue := slices.Sorted(maps.Keys(definitions)); len(queue) > 0; queue = queue[1:] {
		for _, ref := range refsOf(definitions[queue[0]]) {
			if definitions[ref] == nil && is[ref] != nil {
				definitions[ref] = strip(is[ref])
				lines, queue = append(lines, "+ "+ref), append(queue, ref)
			}
		}
	}
	return lines
}

// checkCopies returns an error for each definition of an extension that differs from that of the schema
// next to it: gen could not tell which of the two is meant.
func (r refresher) checkCopies(stripped []byte) error {
	core := filepath.Join(filepath.Dir(r.schema), "schema.json")
	text, err := os.ReadFile(core)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // go generate needs it, and reports that
	}
	if err != nil {
		return err
	}
	theirs, err := definitionsAs("$defs", text)
	if err != nil {
		return fmt.Errorf("%s: %w", core, err)
	}
	ours, err := definitionsAs("$defs", stripped)
	if err != nil {
		return err
	}
	var differ []error
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if theirs[name] != nil && !equal(ours[name], theirs[name]) {
			differ = append(differ, fmt.Errorf("%s: the extension's copy differs from the definition in %s", name, core))
		}
	}
	return errors.Join(differ...)
}

// refsOf returns the definitions that a schema refers to.
func refsOf(node any) (names []string) {
	switch v := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if ref, ok := v[key].(string); ok && key == "$ref" {
				names = append(names, path.Base(ref))
			} else {
				names = append(names, refsOf(v[key])...)
			}
		}
	case []any:
		for _, value := range v {
			names = append(names, refsOf(value)...)
		}
	}
	return names
}
