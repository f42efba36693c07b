package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// distinguish decides how to choose among the arms of a union: by a member that is constant
// in each arm, or else by the members in the table markers.
func (b *builder) distinguish(u *goType) error {
	if _, ok := openUnions[u.name]; ok && b.mcp {
		u.union.first = true
		return nil
	}
	if b.mcp && slices.ContainsFunc(u.union.arms, func(a *arm) bool { return resultArms[a.name] != "" }) {
		return distinguishResults(u)
	}
	if len(u.union.arms) == 0 || slices.ContainsFunc(u.union.arms, func(a *arm) bool { return b.shapes[a.name] == nil }) {
		u.union.try = true
		return nil
	}
	if u.union.mixed && !b.mcp && repeated(u.union.tree, nil) {
		u.union.try = true
		return nil
	}
	members := b.commonTags(u)
	for _, member := range members {
		u.union.member, u.union.ifAbsent = member, ""
		for _, a := range u.union.arms {
			var optional bool
			a.tags, optional = tagsOf(b.shapes[a.name], member)
			if b.mcp {
				a.present = markers[a.name].present
			}
			if optional {
				u.union.ifAbsent = a.tags[0]
			}
		}
		if overlap(u.union.arms) == "" {
			order(u)
			return nil
		}
	}
	if len(members) > 0 && !b.mcp && !u.union.mixed { // arms with the same tag are tried in turn
		u.union.member = members[0]
		for _, a := range u.union.arms {
			a.tags, _ = tagsOf(b.shapes[a.name], members[0])
		}
		return nil
	}
	u.union.member, u.union.ifAbsent = "", ""
	for _, a := range u.union.arms {
		a.tags = nil
		if a.present = markers[a.name].present; len(a.present) == 0 || !b.mcp {
			u.union.try = true
		}
	}
	order(u)
	return nil
}

// repeated reports whether an arm occurs twice in the branches of a union.
func repeated(tree []branch, seen map[string]bool) bool {
	if seen == nil {
		seen = make(map[string]bool)
	}
	for _, br := range tree {
		if seen[br.name] || repeated(br.of, seen) {
			return true
		}
		seen[br.name] = br.name != ""
	}
	return false
}

// distinguishResults decides how to choose among the results of a request: by resultType
// for those in resultArms, by its members for the request's own. A result with neither and an
// unknown resultType is read as the arm that requires no members.
func distinguishResults(u *goType) error {
	u.union.member, u.union.loose = resultType.member, true
	rest := &arm{name: anyResult, not: []string{resultType.usual}}
	for _, name := range slices.Sorted(maps.Keys(resultArms)) {
		if name != anyResult {
			rest.not = append(rest.not, resultArms[name])
		}
	}
	for _, a := range u.union.arms {
		if tag := resultArms[a.name]; tag != "" {
			a.tags = []string{tag}
		} else if a.present = markers[a.name].present; len(a.present) == 0 {
			return fmt.Errorf("the arms of %s cannot be distinguished: %s", u.name, a.name)
		}
	}
	slices.SortStableFunc(u.union.arms, func(x, y *arm) int { return len(y.tags) - len(x.tags) })
	u.union.arms = append(u.union.arms, rest)
	return nil
}

// commonTags returns the members that are constants or enums in every arm and differ
// between arms. Such a member may be optional in at most one arm.
func (b *builder) commonTags(u *goType) (members []string) {
	if len(u.union.arms) == 0 {
		return nil
	}
	first := b.shapes[u.union.arms[0].name]
	for _, member := range slices.Sorted(maps.Keys(first.Properties)) {
		all, same, absent := true, true, 0
		of, _ := tagsOf(first, member)
		for _, a := range u.union.arms {
			tags, optional := tagsOf(b.shapes[a.name], member)
			all = all && tags != nil
			same = same && slices.Equal(tags, of)
			if optional {
				absent++
			}
		}
		if all && (absent == 0 || absent == 1 && b.mcp) && (!same || len(u.union.arms) == 1) {
			members = append(members, member)
		}
	}
	return members
}

// tagsOf returns the possible strings of a member of t, and whether it may be absent.
func tagsOf(t *schemas.Type, member string) (tags []string, optional bool) {
	p := t.Properties[member]
	if p == nil {
		return nil, false
	}
	optional = !slices.Contains(t.Required, member)
	if s, ok := p.Const.(string); ok {
		return []string{s}, optional
	}
	for _, v := range p.Enum {
		if s, ok := v.(string); ok && !optional {
			tags = append(tags, s)
		}
	}
	return tags, optional
}

// overlap returns a tag that several arms with the same markers share, or "".
func overlap(arms []*arm) string {
	seen := make(map[string]bool)
	for _, a := range arms {
		for _, tag := range a.tags {
			key := tag + " " + strings.Join(a.present, " ")
			if seen[key] {
				return tag
			}
			seen[key] = true
		}
	}
	return ""
}

// order puts the arms with more markers first.
func order(u *goType) {
	rank := func(a *arm) int {
		if i := slices.Index(armOrder, a.name); i >= 0 {
			return i - len(armOrder)
		}
		return 0
	}
	slices.SortStableFunc(u.union.arms, func(x, y *arm) int {
		return cmp.Or(len(y.present)-len(x.present), rank(x)-rank(y))
	})
}

// sameForm reports whether two types may share a name.
func sameForm(a, b *goType) bool {
	if a.kind != b.kind || a.constraint != b.constraint || (a.extra == nil) != (b.extra == nil) || a.union.try != b.union.try || len(a.fields) != len(b.fields) || !slices.Equal(a.enum.values, b.enum.values) ||
		a.closed != b.closed || (a.beside == nil) != (b.beside == nil) || a.elem.form() != b.elem.form() || !slices.Equal(a.union.lists, b.union.lists) {
		return false
	}
	for i, f := range a.fields {
		g := b.fields[i]
		if f.json != g.json || f.required != g.required || f.fallback != g.fallback || f.nullable != g.nullable || f.typ.form() != g.typ.form() {
			return false
		}
	}
	names := func(arms []*arm) (names []string) {
		for _, a := range arms {
			names = append(names, a.name)
		}
		return names
	}
	return slices.Equal(names(a.union.arms), names(b.union.arms))
}

// methods pairs every request and notification with its params and result.
func (b *builder) methods() (methods []*method, err error) {
	byName := make(map[string]*method)
	add := func(name string, client, server bool) error {
		m := byName[name]
		if m == nil {
			if m, err = b.method(name); err != nil {
				return err
			}
			for _, other := range slices.Sorted(maps.Keys(byName)) {
				if byName[other].name == m.name {
					return b.refuse(name+"/method", "the method %s is that of %s, too", m.name, other)
				}
			}
			byName[name] = m
		}
		m.client, m.server = m.client || client, m.server || server
		return nil
	}
	for _, union := range slices.Sorted(maps.Keys(messageUnions)) {
		row, names := messageUnions[union], []string(nil)
		switch u := b.types[union]; {
		case u == nil:
		case u.kind == kindAlias:
			names = []string{u.target}
		default:
			for _, a := range u.union.arms {
				names = append(names, a.name)
			}
		}
		for _, name := range names {
			if err := add(name, row.client, row.server); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.extension)) {
		t := b.types[name]
		if t == nil || !slices.ContainsFunc(t.fields, func(f *field) bool { return f.json == "method" && f.constant }) {
			continue
		}
		request := strings.HasSuffix(name, "Request")
		if err := add(name, request, !request); err != nil {
			return nil, err
		}
	}
	methods = slices.Collect(maps.Values(byName))
	slices.SortFunc(methods, func(x, y *method) int { return strings.Compare(x.name, y.name) })
	return methods, nil
}

func (b *builder) method(definition string) (*method, error) {
	t := b.types[definition]
	m := &method{definition: definition, doc: t.doc}
	for _, f := range t.fields {
		switch f.json {
		case "method":
			m.name = f.typ.constant
		case "params":
			m.params, m.required = f.typ.name, f.required
		}
	}
	if m.name == "" || m.params == "" {
		return nil, b.refuse(definition, "a message needs a constant method, and params")
	}
	if p := b.types[m.params]; p != nil && p.kind == kindUnion {
		m.params = "json.RawMessage" // a method needs a type that can decode itself
	}
	var err error
	if m.goName, err = goName(m.name); err != nil {
		return nil, err
	}
	if stem, ok := strings.CutSuffix(definition, "Request"); ok {
		m.result = b.resultOf(stem)
		r := b.types[m.result]
		if r == nil {
			return nil, b.refuse(definition, "no result")
		}
		m.union = r.kind == kindUnion
	}
	return m, nil
}

// resultOf returns the type of a request's result: that in its response if the schema
// describes the response, else the result of the same name, else EmptyResult.
func (b *builder) resultOf(stem string) string {
	if response := b.types[stem+"ResultResponse"]; response != nil {
		for _, f := range response.fields {
			if f.json == "result" {
				return f.typ.name
			}
		}
	}
	if b.types[stem+"Result"] != nil {
		return stem + "Result"
	}
	return "EmptyResult"
}
