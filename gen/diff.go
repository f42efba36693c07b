package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
)

// since reports what changed in the schema and in the Go API since an older schema file. It writes
// nothing.
func (r refresher) since(older string) error {
	was, err := os.ReadFile(older)
	if err != nil {
		return err
	}
	is, err := os.ReadFile(r.schema)
	if err != nil {
		return err
	}
	stripped, err := r.compare(was, is)
	if err != nil || r.isExtension() {
		return err
	}
	_, err = r.compareModels(was, stripped)
	return err
}

// diffSchemas lists the structural differences of two schemas. It ignores prose, the order
// of members and of lists, and whether definitions are called $defs. A line begins with +
// (only in the new), - (only in the old) or ~ (changed).
func diffSchemas(old, new any) (lines []string) {
	compare(ofNewDialect(normal(old)), ofNewDialect(normal(new)), "#", &lines)
	return lines
}

// ofNewDialect returns the schema with $defs instead of definitions and without $schema.
func ofNewDialect(node any) any {
	root, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := maps.Clone(root)
	delete(out, "$schema")
	if key, definitions := definitionsOf(root); key == "definitions" {
		delete(out, key)
		text := strings.ReplaceAll(compact(definitions), `"#/definitions/`, `"#/$defs/`)
		var renamed any
		if err := json.Unmarshal([]byte(text), &renamed); err == nil {
			out["$defs"] = renamed
		}
	}
	return out
}

// normal returns a schema without prose and with sorted lists.
func normal(node any) any {
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
			if m, ok := value.(map[string]any); ok {
				for name, v := range m {
					members[name] = normal(v)
				}
			}
			out[key] = members
		case slices.Contains(keywordSchema, key):
			out[key] = normal(value)
		default:
			list, ok := value.([]any)
			if !ok {
				out[key] = value
				continue
			}
			texts, schemas := make([]string, len(list)), make(map[string]any, len(list))
			for i, v := range list {
				v = normal(v)
				texts[i] = compact(v)
				schemas[texts[i]] = v
			}
			slices.Sort(texts)
			sorted := make([]any, len(list))
			for i, text := range texts {
				sorted[i] = schemas[text]
			}
			out[key] = sorted
		}
	}
	return out
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func short(v any) string {
	if s := compact(v); len(s) > 110 {
		return s[:107] + "..."
	}
	return compact(v)
}

func compare(old, new any, path string, lines *[]string) {
	add := func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) }
	a, ok1 := old.(map[string]any)
	b, ok2 := new.(map[string]any)
	if ok1 && ok2 {
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			here := path + "/" + name
			x, inOld := a[name]
			y, inNew := b[name]
			switch {
			case !inNew:
				add("- %s %s", here, short(x))
			case !inOld:
				add("+ %s %s", here, short(y))
			default:
				compare(x, y, here, lines)
			}
		}
		return
	}
	if reflect.DeepEqual(old, new) {
		return
	}
	x, ok1 := old.([]any)
	y, ok2 := new.([]any)
	if !ok1 || !ok2 {
		add("~ %s %s -> %s", path, short(old), short(new))
		return
	}
	if was, is := byTag(x), byTag(y); was != nil && is != nil {
		compare(was, is, path, lines)
		return
	}
	removed, added := without(x, y), without(y, x)
	if len(removed) == 1 && len(added) == 1 {
		compare(removed[0], added[0], path+"/*", lines)
		return
	}
	for _, v := range removed {
		add("- %s/* %s", path, short(v))
	}
	for _, v := range added {
		add("+ %s/* %s", path, short(v))
	}
}

// byTag returns the schemas of a choice by their tags, nil if one has no tag of its own.
func byTag(arms []any) map[string]any {
	tagged := make(map[string]any)
	for _, arm := range arms {
		tag := tagOf(arm)
		if tag == "" || tagged[tag] != nil {
			return nil
		}
		tagged[tag] = arm
	}
	return tagged
}

// tagOf returns the tag of an arm: the value of its constant member, its values, or its members; "" if it has none.
func tagOf(arm any) string {
	schema, _ := arm.(map[string]any)
	members, _ := schema["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(members))
	for _, name := range names {
		if values := enumOf(members[name]); len(values) == 1 && members[name].(map[string]any)["type"] == "string" {
			return values[0]
		}
	}
	if values := enumOf(arm); len(values) > 0 {
		return strings.Join(values, "|")
	}
	return strings.Join(names, "+")
}

// enumOf returns the strings of a schema's enums, also those in a choice.
func enumOf(node any) (values []string) {
	schema, _ := node.(map[string]any)
	list, _ := schema["enum"].([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			values = append(values, s)
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		arms, _ := schema[key].([]any)
		for _, arm := range arms {
			values = append(values, enumOf(arm)...)
		}
	}
	return values
}

// without returns the elements of a that b lacks.
func without(a, b []any) (rest []any) {
	have := make(map[string]bool)
	for _, v := range b {
		have[compact(v)] = true
	}
	for _, v := range a {
		if !have[compact(v)] {
			rest = append(rest, v)
		}
	}
	return rest
}

// api returns the exported names that a model becomes, each with a summary of its Go form.
func (m *model) api() map[string]string {
	e := &emitter{model: m, byName: m.byName()}
	names := make(map[string]string)
	for _, t := range m.types {
		switch t.kind {
		case kindShape:
			continue
		case kindAlias:
			names[t.name] = "type = " + t.target
		case kindString:
			names[t.name] = "type string"
		case kindMembers, kindJSON:
			names[t.name] = "type, raw JSON"
		case kindList, kindMap, kindNamed:
			names[t.name] = "type " + t.content().String()
		case kindHand:
			names[t.name] = "type, by hand"
		case kindObject:
			names[t.name] = "type struct"
			for _, f := range t.fields {
				if f.constant {
					names[t.name+" "+f.json] = "constant " + f.typ.constant
				} else {
					names[t.name+"."+f.name] = e.fieldType(f) + " " + f.json
				}
			}
			if t.beside != nil {
				names[t.name+"."+t.beside.name] = t.beside.typ.String() + ", its members among the others"
			}
		case kindEnum:
			names[t.name] = "type string, one of " + strings.Join(t.enum.values, " ")
		case kindUnion:
			arms := slices.Clone(t.union.lists)
			for _, a := range t.union.arms {
				if !slices.Contains(arms, a.name) {
					arms = append(arms, a.name)
				}
			}
			names[t.name] = "type interface, one of " + strings.Join(arms, " ")
		}
	}
	for _, method := range m.methods {
		names[method.goName] = strings.Join([]string{"method", method.name, method.params, method.result, method.senders()}, " ")
	}
	return names
}

// diffAPI lists the exported names that were added (+), removed (-) or changed (~).
func diffAPI(old, new *model) (lines []string) {
	a, b := old.api(), new.api()
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := a[name], b[name]
		switch {
		case was == "":
			lines = append(lines, fmt.Sprintf("+ %s: %s", name, is))
		case is == "":
			lines = append(lines, fmt.Sprintf("- %s: %s", name, was))
		case was != is:
			lines = append(lines, fmt.Sprintf("~ %s: %s -> %s", name, was, is))
		}
	}
	return lines
}
