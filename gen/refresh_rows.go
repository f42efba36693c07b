package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// checkRows lists the rows of tables.go that applied to the old types and whose definition the new
// schema lacks, and the messages that only the new one has and nobody sends. It returns an error for what
// the new types cannot do: a row whose member is gone although its definition is there, a type that is
// to be written by hand and is not, and a result that the union of results lacks.
func checkRows(old, new *model) (lost, unsent []string, err error) {
	before, after := old.byName(), new.byName()
	var refused []error
	row := func(table, name, member string) {
		member, _, _ = strings.Cut(member, "/")
		switch is := after[name]; {
		case name == "*" || !hasMember(before[name], member) || hasMember(is, member):
		case is != nil && is.kind == kindObject:
			refused = append(refused, refuse("#/$defs/"+name, "the member %s, which the table %s in gen/tables.go names, is gone", member, table))
		default:
			lost = append(lost, table+" "+name+" "+member)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(guarded)) {
		for _, member := range guarded[name].members {
			row("guarded", name, member)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(markers)) {
		for _, member := range markers[name].present {
			row("markers", name, member)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(messageUnions)) {
		if before[name] != nil && after[name] == nil {
			lost = append(lost, "messageUnions "+name)
		}
	}
	for _, t := range new.types {
		if _, ok := handTypes[t.name]; t.kind == kindHand && !ok && t.name != "Base64" {
			refused = append(refused, refuse("#/$defs/"+t.origin, "the type %s is to be written by hand, and is not: the tables typeNames and handTypes in gen/tables.go have no row for it", t.name))
		}
	}
	sent := make(map[string]bool)
	for _, m := range new.methods {
		sent[m.definition] = true
		result := m.result
		if t := after[result]; t != nil && t.kind == kindAlias {
			result = t.target
		}
		for union, from := range map[string]bool{"ServerResult": m.client, "ClientResult": m.server} {
			results := after[union]
			if from && results != nil && results.kind == kindUnion && result != "" && !m.union && !isArm(results, result) {
				refused = append(refused, refuse("#/$defs/"+union, "it lacks %s, the result of the method %s", m.result, m.name))
			}
		}
	}
	for _, t := range new.types {
		if before[t.name] == nil && !sent[t.origin] && slices.ContainsFunc(t.fields, func(f *field) bool { return f.json == "method" && f.constant }) {
			unsent = append(unsent, t.name)
		}
	}
	return lost, unsent, errors.Join(refused...)
}

func isArm(union *goType, name string) bool {
	return slices.Contains(union.union.lists, name) || slices.ContainsFunc(union.union.arms, func(a *arm) bool { return a.name == name })
}

func hasMember(t *goType, member string) bool {
	return t != nil && slices.ContainsFunc(t.fields, func(f *field) bool { return f.json == member })
}
