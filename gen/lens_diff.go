package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// prune returns the definitions that a package uses, with the names of all methods and of all
// members, but only with the types of those members that it uses.
func (l *lens) prune() map[string]any {
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
		for _, source := range t.sources {
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
	return kept
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
		if refs := refsOf(map[string]any{"$ref": v["$ref"]}); len(refs) > 0 && kept[refs[0]] == nil {
			return true
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = cutRefs(kept, value)
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

// changes lists how the definitions that a package uses differ from those before. Old and new are
// pruned.
func (l *lens) changes(old, new map[string]any) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, side := range []struct {
		union, gone, added string
		methods            map[string]string
	}{
		{allCalls, "method", "", l.Calls},
		{allAsks, "request to us", "new request to us: %s; it is refused, and nothing shows it to a person", l.Asks},
		{allNotes, "notification", "new notification: %s; it is ignored", l.Notes},
	} {
		was, is := methodsOf(old, side.union), methodsOf(new, side.union)
		for _, method := range slices.Sorted(maps.Keys(was)) {
			if _, ok := is[method]; !ok {
				say("%s is gone: %s%s", side.gone, method, used(side.methods[method] != ""))
			}
		}
		for _, method := range slices.Sorted(maps.Keys(is)) {
			if _, ok := was[method]; !ok && side.added != "" {
				say(side.added, method)
			} else if ok && side.methods[method] != "" && was[method] != is[method] {
				say("%s: its params are %s, not %s", method, is[method], was[method])
			}
		}
	}
	for _, name := range union(old, new) {
		switch {
		case name == allCalls || name == allAsks || name == allNotes:
		case old[name] == nil:
			say("definition is new: %s", name)
		case new[name] == nil:
			say("definition is gone, or nothing uses it: %s", name)
		default:
			l.compare(name, old[name], new[name], say)
		}
	}
	return lines
}

func used(is bool) string {
	if is {
		return " (used)"
	}
	return ""
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// compare lists the differences of a definition or of an arm.
func (l *lens) compare(source string, old, new any, say func(string, ...any)) {
	if canonical(old) == canonical(new) {
		return
	}
	was, is := objectMembers(old), objectMembers(new)
	var gone, added []string
	for _, name := range union(was, is) {
		a, inOld := was[name]
		b, inNew := is[name]
		uses := used(l.used[source][name])
		switch {
		case !inNew:
			gone = append(gone, name)
			say("%s: the member %s is gone%s", source, name, uses)
		case !inOld:
			added = append(added, name)
			say("%s: the member %s is new%s", source, name, map[bool]string{true: ", and required"}[slices.Contains(stringsOf(new, "required"), name)])
		case canonical(a) != canonical(b):
			say("%s: the type of %s has changed%s: %s, was %s", source, name, uses, compact(b), compact(a))
		case slices.Contains(stringsOf(old, "required"), name) != slices.Contains(stringsOf(new, "required"), name):
			say("%s: %s is %s%s", source, name, map[bool]string{true: "required now", false: "optional now"}[slices.Contains(stringsOf(new, "required"), name)], uses)
		}
	}
	if len(gone) == 1 && len(added) == 1 {
		say("%s: perhaps %s is called %s now", source, gone[0], added[0])
	}
	before, after := byTag(old), byTag(new)
	for _, tag := range union(before, after) {
		switch {
		case before[tag] == nil:
			say("%s: the choice %s is new", source, tag)
		case after[tag] == nil:
			say("%s: the choice %s is gone%s", source, tag, used(l.used[source+":"+tag] != nil || l.whole[source]))
		default:
			l.compare(source+":"+tag, before[tag], after[tag], say)
		}
	}
	if len(before)+len(after)+len(was)+len(is) == 0 {
		say("%s has changed: %s, was %s", source, compact(new), compact(old))
	}
}

// byTag returns the arms of a choice by their tags; the values of an enum are arms too.
func byTag(node any) map[string]any {
	arms := map[string]any{}
	for _, arm := range slices.Concat(listOf(node, "oneOf"), listOf(node, "anyOf")) {
		if len(objectMembers(arm)) > 0 {
			arms[tagOf(arm)] = arm
			continue
		}
		for _, v := range armsOf(arm) {
			arms[tagText(v)] = v
		}
	}
	if len(objectMembers(node)) == 0 && len(arms) == 0 {
		for _, v := range listOf(node, "enum") {
			arms[tagText(v)] = v
		}
	}
	return arms
}

func tagText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}
