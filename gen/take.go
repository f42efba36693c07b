package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// take writes the schema of upstream's file to the file name, in the form that the project keeps it:
// without upstream's prose, with our descriptions of what the old file has, too.
func take(name, source string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	var was, is any
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if err := checkKeywords(is, "#"); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	is = strip(is)
	if at := proseLeft(is, "#"); at != "" {
		return fmt.Errorf("%s: %s: a text is left although all prose keywords were dropped", source, at)
	}
	if text, err = os.ReadFile(name); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	keepDescriptions(was, is)
	if text, err = formatSchema(is); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// strip returns a schema without its prose. It drops keywords only: a property that is
// named description stays.
func strip(node any) any {
	object, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := make(map[string]any)
	for key, value := range object {
		switch {
		case slices.Contains(keywordProse, key):
		case slices.Contains(keywordMap, key):
			members := make(map[string]any)
			for name, v := range value.(map[string]any) {
				members[name] = strip(v)
			}
			out[key] = members
		case slices.Contains(keywordList, key):
			list := slices.Clone(value.([]any))
			for i, v := range list {
				list[i] = strip(v)
			}
			out[key] = list
		case slices.Contains(keywordSchema, key):
			out[key] = strip(value)
		default:
			out[key] = value
		}
	}
	return out
}

// proseLeft returns the path of a string that looks like a sentence, or "".
func proseLeft(node any, path string) string {
	switch v := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if at := proseLeft(v[name], path+"/"+name); at != "" {
				return at
			}
		}
	case []any:
		for i, e := range v {
			if at := proseLeft(e, fmt.Sprintf("%s/%d", path, i)); at != "" {
				return at
			}
		}
	case string:
		if strings.ContainsAny(v, " \n") || len(v) > 80 {
			return path
		}
	}
	return ""
}

// keepDescriptions copies titles and descriptions from old to the same places in new.
func keepDescriptions(old, new any) {
	_, was := definitionsOf(old)
	_, is := definitionsOf(new)
	for name, d := range is {
		describe(was[name], d)
	}
}

// describe copies the titles and descriptions of old and its parts to new.
func describe(old, new any) {
	a, ok1 := old.(map[string]any)
	b, ok2 := new.(map[string]any)
	if !ok1 || !ok2 {
		return
	}
	for _, key := range []string{"title", "description"} {
		if text, ok := a[key].(string); ok {
			b[key] = text
		}
	}
	for _, key := range keywordSchema {
		describe(a[key], b[key])
	}
	for _, key := range keywordList {
		was, _ := a[key].([]any)
		is, _ := b[key].([]any)
		for i := range is {
			if len(was) == len(is) {
				describe(was[i], is[i])
			}
		}
	}
	was, _ := a["properties"].(map[string]any)
	is, _ := b["properties"].(map[string]any)
	for name := range is {
		describe(was[name], is[name])
	}
}

// formatSchema returns a schema as the project stores it: members sorted, an indent of two
// spaces, one line feed at the end.
func formatSchema(tree any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(tree); err != nil {
		return nil, err
	}
	return b.Bytes(), nil // "$schema" sorts before the letters
}
