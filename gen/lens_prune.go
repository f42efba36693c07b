package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// prune returns a schema of the definitions that a package uses, with the names of all methods and of all
// members, but only with the types of those members that it uses.
func (l *lens) prune() any {
	kept := map[string]any{}
	for name := range l.whole {
		kept[name] = l.definitions[name]
	}
	for name := range l.objects {
		kept[name] = map[string]any{"type": "object"}
	}
	for source := range l.used {
		name, _, _ := strings.Cut(source, ":")
		if !l.whole[name] {
			kept[name] = l.pruneNode(name, l.definitions[name])
		}
	}
	for _, t := range l.types { // those of which no member is used
		for source := range l.Types[t.name] {
			name, _, _ := strings.Cut(source, ":")
			if kept[name] == nil && l.definitions[name] != nil {
				kept[name] = l.pruneNode(name, l.definitions[name])
			}
		}
	}
	kept = cutRefs(kept, kept).(map[string]any)
	for union, methods := range map[string]map[string]string{allCalls: l.Calls, allAsks: l.Asks, allNotes: l.Notes} {
		var arms, others []any
		known := methodsOf(l.definitions, union)
		for _, method := range slices.Sorted(maps.Keys(known)) {
			if _, ok := methods[method]; !ok {
				others = append(others, method)
				continue
			}
			members := map[string]any{"method": map[string]any{"type": "string", "enum": []any{method}}}
			if known[method] != "" {
				members["params"] = map[string]any{"$ref": "#/definitions/" + known[method]}
			}
			arms = append(arms, map[string]any{"properties": members})
		}
		other := map[string]any{"properties": map[string]any{"method": map[string]any{"type": "string", "enum": others}}}
		kept[union] = map[string]any{"oneOf": append(arms, other)}
	}
	return map[string]any{"definitions": kept}
}

// pruneNode returns a definition, or an arm of one, with the types of the used members only.
func (l *lens) pruneNode(source string, node any) any {
	schema, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := maps.Clone(schema)
	if members := objectMembers(node); members != nil {
		kept := map[string]any{}
		for name, m := range members {
			kept[name] = true
			if l.used[source][name] || len(enumOf(m)) == 1 {
				kept[name] = m
			}
		}
		out["properties"] = kept
	}
	if arms := listOf(node, "oneOf"); arms != nil {
		var kept []any
		for _, arm := range arms {
			kept = append(kept, l.pruneNode(source+":"+tagOf(arm), arm))
		}
		out["oneOf"] = kept
	}
	if beside := listOf(node, "anyOf"); beside != nil {
		var kept []any
		for _, b := range beside {
			kept = append(kept, l.pruneNode(source, b))
		}
		out["anyOf"] = kept
	}
	return out
}

// cutRefs replaces references to definitions that are not kept by any value.
func cutRefs(kept map[string]any, node any) any {
	switch v := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = cutRefs(kept, value)
		}
		if ref, ok := v["$ref"].(string); ok {
			if kept[path.Base(ref)] == nil {
				return true
			}
			out["$ref"] = "#/definitions/" + path.Base(ref)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = cutRefs(kept, value)
		}
		return out
	}
	return node
}
