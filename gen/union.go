package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// union makes the type of a choice.
func (b *builder) union(goName, origin string, t *schemas.Type) error {
	out := &goType{name: goName, origin: origin, doc: typeDoc(origin, t), kind: kindUnion}
	if err := b.arms(out, origin, t); err != nil {
		return err
	}
	if len(out.union.lists) > 1 && !isMessage(origin) {
		return b.refuse(origin, "no rule for a choice of several lists")
	}
	for _, name := range extraArms[place(origin)].arms {
		if b.extension[name] {
			out.union.arms = append(out.union.arms, &arm{name: name})
		}
	}
	return b.add(out)
}

// arms adds the arms of a choice to a union. The arms of a union within it become arms of the outer one.
func (b *builder) arms(out *goType, origin string, t *schemas.Type) error {
	for i, a := range t.AnyOf {
		here := fmt.Sprintf("%s/anyOf/%d", origin, i)
		if a.Ref == "" {
			if !slices.Equal(a.Type, []string{"array"}) {
				return b.refuse(here, "no rule for an arm that is neither a definition nor a list")
			}
			list := &goType{name: out.name + "List", origin: here}
			out.union.lists = append(out.union.lists, list.name)
			if err := b.named(here, a, list); err != nil {
				return err
			}
			continue
		}
		name, d, err := b.target(here, a)
		if err != nil {
			return err
		}
		switch {
		case isChoice(d):
			if err := b.arms(out, name, d); err != nil {
				return err
			}
		case slices.Equal(d.Type, []string{"array"}):
			out.union.lists = append(out.union.lists, b.goNames[name])
		case isFree(d) || !slices.Equal(d.Type, []string{"object"}):
			return b.refuse(here, "no rule for the arm %s, which is not an object", name)
		case !slices.ContainsFunc(out.union.arms, func(a *arm) bool { return a.name == b.goNames[name] }):
			out.union.arms = append(out.union.arms, &arm{name: b.goNames[name]})
		}
	}
	return nil
}

// distinguish decides how to choose among the arms of a union: by a member that is constant
// in each arm, or else by the members in the table markers.
func (b *builder) distinguish(u *goType) error {
	if slices.ContainsFunc(u.union.arms, func(a *arm) bool { return resultArms[a.name] != "" }) {
		return distinguishResults(u)
	}
	for _, member := range b.commonTags(u) {
		u.union.member, u.union.ifAbsent = member, ""
		for _, a := range u.union.arms {
			var optional bool
			a.tags, optional = tagsOf(b.shapes[a.name], member)
			a.present = markers[a.name].present
			if optional {
				u.union.ifAbsent = a.tags[0]
			}
		}
		if !overlap(u.union.arms) {
			order(u)
			return nil
		}
	}
	u.union.member, u.union.ifAbsent = "", ""
	for _, a := range u.union.arms {
		a.tags = nil
		if a.present = markers[a.name].present; len(a.present) == 0 {
			return fmt.Errorf("the arms cannot be told apart: %s has no constant, and no row in markers", a.name)
		}
	}
	order(u)
	return nil
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
		if all && absent <= 1 && (!same || len(u.union.arms) == 1) {
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

// overlap reports whether several arms with the same markers share a tag.
func overlap(arms []*arm) bool {
	seen := make(map[string]bool)
	for _, a := range arms {
		for _, tag := range a.tags {
			key := tag + " " + strings.Join(a.present, " ")
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
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
