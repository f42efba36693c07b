package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// tellApart decides how the arms of a union are told apart: by a member that is
// constant in each, else by the members that the table telling lists.
func (b *builder) tellApart(u *goType) error {
	if _, ok := openUnions[u.name]; ok {
		u.first = true
		return nil
	}
	row := telling[u.name]
	for _, member := range b.commonTags(u) {
		u.member = member
		for _, a := range u.arms {
			a.tags = tagsOf(b.definitions[a.name], member)
			a.present = row.arms[a.name]
		}
		if overlap(u.arms) == "" {
			b.order(u)
			return nil
		}
	}
	u.member = ""
	for _, a := range u.arms {
		a.tags = nil
		if a.present = row.arms[a.name]; len(a.present) == 0 {
			return fmt.Errorf("the arms of %s cannot be told apart: %s", u.name, a.name)
		}
	}
	b.order(u)
	return nil
}

// commonTags returns the required members that are constants or enums in every
// arm, and not the same constant in all.
func (b *builder) commonTags(u *goType) (members []string) {
	first := b.definitions[u.arms[0].name]
	for _, member := range slices.Sorted(maps.Keys(first.Properties)) {
		all, same := true, true
		for _, a := range u.arms {
			tags := tagsOf(b.definitions[a.name], member)
			all = all && tags != nil
			same = same && slices.Equal(tags, tagsOf(first, member))
		}
		if all && (!same || len(u.arms) == 1) {
			members = append(members, member)
		}
	}
	return members
}

// tagsOf returns the strings that a required member of t may be.
func tagsOf(t *schemas.Type, member string) (tags []string) {
	p := t.Properties[member]
	if p == nil || !slices.Contains(t.Required, member) {
		return nil
	}
	if s, ok := p.Const.(string); ok {
		return []string{s}
	}
	for _, v := range p.Enum {
		if s, ok := v.(string); ok {
			tags = append(tags, s)
		}
	}
	return tags
}

// overlap returns a tag that several arms share without a telling member.
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

// order puts the arms with more telling members first.
func (b *builder) order(u *goType) {
	slices.SortStableFunc(u.arms, func(x, y *arm) int { return len(y.present) - len(x.present) })
}

// sameForm reports whether two types may share a name.
func sameForm(a, b *goType) bool {
	if a.kind != b.kind || len(a.fields) != len(b.fields) || !slices.Equal(a.values, b.values) {
		return false
	}
	for i, f := range a.fields {
		g := b.fields[i]
		if f.json != g.json || f.required != g.required || f.typ.String() != g.typ.String() {
			return false
		}
	}
	names := func(arms []*arm) (names []string) {
		for _, a := range arms {
			names = append(names, a.name)
		}
		return names
	}
	return slices.Equal(names(a.arms), names(b.arms))
}

// methods pairs every request and notification with its params and result.
func (b *builder) methods() (methods []*method, err error) {
	byName := make(map[string]*method)
	for _, union := range slices.Sorted(maps.Keys(messageUnions)) {
		u := b.types[union]
		if u == nil {
			continue
		}
		for _, a := range u.arms {
			m := byName[a.name]
			if m == nil {
				if m, err = b.method(a.name); err != nil {
					return nil, err
				}
				byName[a.name] = m
			}
			m.client = m.client || messageUnions[union].client
			m.server = m.server || messageUnions[union].server
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
		return nil, fmt.Errorf("%s: a message without a constant method or without params", definition)
	}
	var err error
	if m.goName, err = goName(m.name); err != nil {
		return nil, err
	}
	if stem, ok := strings.CutSuffix(definition, "Request"); ok {
		m.result = "EmptyResult"
		if b.types[stem+"Result"] != nil {
			m.result = stem + "Result"
		}
		if b.types[m.result] == nil {
			return nil, fmt.Errorf("%s: no result", definition)
		}
	}
	return m, nil
}
