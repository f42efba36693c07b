package codec

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// UnknownArm reads a union value with an unknown tag; a strict decoder refuses it.
func (d *Decoder) UnknownArm(name *string, raw *json.RawMessage, member string, tag []byte) error {
	*name = string(tag)
	if !d.strict {
		return Object(raw, d)
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return d.WrongTag(member, *name)
}

// WrongTag returns the error that no arm has that tag.
func (d *Decoder) WrongTag(member, tag string) error {
	return within(fail("%q is not known", tag), member)
}

// Tagged reads a union whose arms differ by the value of one member.
func Tagged[P any](to P, d *Decoder, member string, read func(to P, d *Decoder, tag []byte) error) error {
	return TaggedOr(to, d, member, nil, read)
}

// TaggedOr is Tagged for a union whose member may be absent; that means the tag of the last
// shape. The shapes help to name the missing member.
func TaggedOr[P any](
	to P, d *Decoder, member string, shapes []Shape, read func(to P, d *Decoder, tag []byte) error,
) error {
	before := d.state
	tag, err := d.findTag(member, shapes)
	if err != nil {
		return err
	}
	d.state = before
	return read(to, d, tag)
}

// findTag returns the string value of member in the next object, which it need not read to the
// end. If the member is absent, the tag of the last shape is meant.
func (d *Decoder) findTag(member string, shapes []Shape) (tag []byte, err error) {
	if d.kind() != '{' {
		return nil, d.Wrong("an object")
	}
	before := d.state
	o := object{mark: len(d.names)}
	if err := d.open(); err != nil {
		return nil, err
	}
	for {
		name, err := d.next(&o)
		if err != nil {
			return nil, err
		}
		if name == nil {
			break
		}
		if string(name) == member {
			tag, err := d.scratch()
			return tag, within(err, member)
		}
		if err := d.SkipValue(); err != nil {
			return nil, err
		}
	}
	if shapes == nil {
		return nil, missing(member)
	}
	d.state = before
	names, _, err := d.readNames("", shapes)
	if err != nil {
		return nil, err
	}
	last := len(shapes) - 1
	if _, lacks := names.lack(shapes[last].Required, false); lacks &&
		nearest(shapes, names, func(Shape) bool { return true }) != last {
		return nil, missing(member)
	}
	return []byte(shapes[last].Tag), nil
}

// Beside reads an object that has own members and those of a union. readUnion comes first and returns
// the members that the arm does not know, from which Beside then removes the own ones, whose names have
// spaces between them. own reads the object again, and skips what is not its own.
func (d *Decoder) Beside(
	readUnion func(*Decoder) (map[string]json.RawMessage, error), names string, own func(*Decoder) error,
) error {
	before := d.state
	extra, err := readUnion(d)
	if err != nil {
		return err
	}
	d.state = before
	for name, rest := word(names); name != ""; name, rest = word(rest) {
		delete(extra, name)
	}
	return own(d)
}

// Skip reads a member that is not kept, and refuses its name as UnknownBut does.
func (d *Decoder) Skip(guarded string, name []byte) error {
	d.guard(guarded, name)
	return d.SkipValue()
}

// Shape describes an arm of a union. The names and values in it have spaces between them. A
// name in Present may be a path of two names: items/enum is the member enum of the member
// items.
type Shape struct {
	Tag      string // the value that the union's member must have, "" for any
	Not      string // values that it must not have
	Present  string // members that must be there
	Required string // members that the arm requires; they and the optional ones improve errors
	Optional string // members that the arm also has
}

// admits reports whether the arm may have that tag.
func (s Shape) admits(tag string) bool { return (s.Tag == "" || s.Tag == tag) && !listed(s.Not, tag) }

// Untagged reads a union whose arms differ by the members that are present. It uses the
// first shape that fits. If none fits, the error names a member that the nearest arm lacks.
func Untagged[P any](
	to P, d *Decoder, member string, shapes []Shape, read func(to P, d *Decoder, arm int) error,
) error {
	before := d.state
	arm, err := d.findArm(member, shapes)
	if err != nil {
		return err
	}
	d.state = before
	return read(to, d, arm)
}

// findArm reads an object and returns the number of the first shape that fits. If only null
// fits, for which a lenient decoder may have a meaning, the arm decides about it.
func (d *Decoder) findArm(member string, shapes []Shape) (arm int, err error) {
	names, tag, err := d.readNames(member, shapes)
	if err != nil {
		return 0, err
	}
	for _, null := range []bool{false, true} {
		for i, s := range shapes {
			if s.admits(tag) {
				if _, lacks := names.lack(s.Present, null && !d.strict); !lacks {
					return i, nil
				}
			}
		}
	}
	near := nearest(shapes, names, func(s Shape) bool { return s.admits(tag) })
	name, _ := names.lack(shapes[near].Present, false)
	wrong := fail("required, but absent")
	if _, null := names.has(name); null {
		wrong = fail("required, but null")
	}
	if first, inner, deep := cut(name, '/'); deep {
		return 0, within(within(wrong, inner), first)
	}
	return 0, within(wrong, name)
}

// names are the names of an object's members. They include paths of two names where shapes have
// such paths.
type names []memberName

type memberName struct {
	name []byte
	null bool // its value is null
}

// readNames reads an object's names, which are valid until the next call, and the value of member,
// if that is a string.
func (d *Decoder) readNames(member string, shapes []Shape) (list names, tag string, err error) {
	list = d.list[:0]
	err = d.ReadObject("", func(name []byte) error {
		kind := d.kind()
		list = append(list, memberName{name, kind == 'n'})
		switch {
		case kind == '"' && string(name) == member:
			return Str(&tag, d)
		case kind == '{' && looksInto(shapes, name):
			return d.ReadObject("", func(inner []byte) error {
				list = append(list, memberName{slices.Concat(name, []byte("/"), inner), d.kind() == 'n'})
				return d.SkipValue()
			})
		}
		return d.SkipValue()
	})
	d.list = list
	return list, tag, err
}

// looksInto reports whether a shape has a path that begins with member.
func looksInto(shapes []Shape, member []byte) bool {
	for i := range shapes {
		for p, rest := word(shapes[i].Present); p != ""; p, rest = word(rest) {
			if first, _, deep := cut(p, '/'); deep && first == string(member) {
				return true
			}
		}
	}
	return false
}

// has reports whether a name is there, and whether its value is null.
func (list names) has(name string) (ok, null bool) {
	for i := range list {
		if string(list[i].name) == name {
			return true, list[i].null
		}
	}
	return false, false
}

// lack returns the first of members that is absent, or null unless that is allowed.
func (list names) lack(members string, null bool) (name string, ok bool) {
	for m, rest := word(members); m != ""; m, rest = word(rest) {
		if there, isNull := list.has(m); !there || isNull && !null {
			first, _, _ := cut(m, '/')
			if there, isNull := list.has(first); !there || isNull {
				return first, true
			}
			return m, true
		}
	}
	return "", false
}

// nearest returns the arm among those that are admitted that fits the names best. These criteria
// count in order: the fewest missing required members, the most required members in another case,
// the most members present, the fewest missing optional members.
func nearest(shapes []Shape, list names, admits func(Shape) bool) (arm int) {
	best := [4]int{math.MinInt}
	for i, s := range shapes {
		required, there, otherCase := list.fit(s.Required)
		optional, also, _ := list.fit(s.Optional)
		rank := [4]int{there - required, otherCase, there + also, also - optional}
		if admits(s) && slices.Compare(rank[:], best[:]) > 0 {
			arm, best = i, rank
		}
	}
	return arm
}

// fit counts the members, those that are there, and names that differ from one only by case.
func (list names) fit(members string) (wanted, there, otherCase int) {
	for m, rest := word(members); m != ""; m, rest = word(rest) {
		wanted++
		for i := range list {
			switch name := list[i].name; {
			case string(name) == m:
				there++
			case strings.EqualFold(string(name), m):
				otherCase++
			}
		}
	}
	return wanted, there, otherCase
}
