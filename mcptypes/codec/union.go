package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// UnknownArm reads a union value with an unknown tag; a strict decoder refuses it. The
// argument tag is valid until the next read.
func (d *Decoder) UnknownArm(name *string, raw *json.RawMessage, member string, tag []byte) error {
	*name = string(tag)
	if !d.strict {
		return Object(raw, d)
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return d.NotKnown(member, *name)
}

// NotKnown returns an error about the tag in member of the object that was read last: no
// arm of the union has it.
func (d *Decoder) NotKnown(member, tag string) error {
	return &DecodeError{Path: string(d.StackPointer().AppendToken(member)), Msg: fmt.Sprintf("%q is not known", tag)}
}

// peekTag returns the string value of member without reading it. ok is false unless member
// comes first in the next object and its text is in the buffer without escapes.
func (d *Decoder) peekTag(member string) (tag []byte, ok bool) {
	if d.PeekKind() != '{' {
		return nil, false
	}
	const white = ",: \t\r\n"
	rest := bytes.TrimLeft(d.UnreadBuffer(), white)
	rest = bytes.TrimLeft(rest[1:], white)
	if len(rest) < len(member)+3 || rest[0] != '"' || string(rest[1:len(member)+1]) != member || rest[len(member)+1] != '"' {
		return nil, false
	}
	rest = bytes.TrimLeft(rest[len(member)+2:], white)
	if len(rest) == 0 || rest[0] != '"' {
		return nil, false
	}
	end := bytes.IndexByte(rest[1:], '"')
	if end < 0 || bytes.IndexByte(rest[1:1+end], '\\') >= 0 {
		return nil, false
	}
	return rest[1 : 1+end], true
}

// Tagged reads a union whose arms differ by the value of one member.
func Tagged[P any](to P, d *Decoder, member string, read func(to P, d *Decoder, tag []byte) error) error {
	if tag, ok := d.peekTag(member); ok {
		return read(to, d, tag)
	}
	raw, tag, err := d.readTag(member, nil)
	if err != nil {
		return err
	}
	return d.again(raw, func(sub *Decoder) error { return read(to, sub, tag) })
}

// TaggedOr is Tagged for a union whose member may be absent; that means the tag of the last
// shape. The shapes help to name the missing member.
func TaggedOr[P any](to P, d *Decoder, member string, shapes []Shape, read func(to P, d *Decoder, tag []byte) error) error {
	raw, tag, err := d.readTag(member, shapes)
	if err != nil {
		return err
	}
	return d.again(raw, func(sub *Decoder) error { return read(to, sub, tag) })
}

// readTag reads an object and returns it with the string value of member. If that is absent,
// the tag of the last shape is meant.
func (d *Decoder) readTag(member string, shapes []Shape) (raw, tag []byte, err error) {
	if raw, err = d.objectValue(); err != nil {
		return nil, nil, err
	}
	if tag, err = d.findTag(raw, member); tag != nil || err != nil {
		return raw, tag, err
	}
	if shapes == nil {
		return nil, nil, d.missing(member)
	}
	names := make(names)
	if err := d.again(raw, func(sub *Decoder) error { return sub.readNames(names, "", nil, shapes) }); err != nil {
		return nil, nil, err
	}
	last := len(shapes) - 1
	if _, lacks := names.lack(shapes[last].Required, false); lacks && nearest(shapes, names) != last {
		return nil, nil, d.missing(member)
	}
	return raw, []byte(shapes[last].Tag), nil
}

// findTag returns the string value of member in raw, the object that was read last; nil if
// it is absent.
func (d *Decoder) findTag(raw []byte, member string) (tag []byte, err error) {
	err = d.again(raw, func(sub *Decoder) error {
		name, err := sub.Begin()
		for ; name != nil; name, err = sub.Next(err) {
			if string(name) == member {
				value, err := sub.scratch("a string")
				tag = append([]byte{}, value...)
				return err
			}
			err = sub.SkipValue()
		}
		return err
	})
	return tag, err
}

// ReadBeside reads an object with its own members and those of a union. own reads the
// members in names and calls SkipBeside for all others. The others are then read as the
// union, whose arm the member tag selects.
func ReadBeside[P any](to P, d *Decoder, tag string, own func(*Decoder) error, read func(to P, d *Decoder, tag []byte) error, names string) error {
	raw, err := d.objectValue()
	if err != nil {
		return err
	}
	var value []byte
	err = d.again(raw, func(sub *Decoder) error {
		sub.tagName = tag
		err := own(sub)
		value = sub.tag
		return err
	})
	if err != nil {
		return err
	}
	if value == nil {
		return d.missing(tag)
	}
	return d.again(raw, func(sub *Decoder) error {
		sub.beside = names
		return read(to, sub, value)
	})
}

// SkipBeside skips a member that belongs to the union of ReadBeside. It keeps the value of
// the member that selects the arm.
func (d *Decoder) SkipBeside(name []byte) error {
	if string(name) != d.tagName {
		return d.SkipValue()
	}
	tag, err := d.scratch("a string")
	d.tag = append([]byte{}, tag...)
	return err
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
func (s Shape) admits(tag string) bool { return (s.Tag == "" || s.Tag == tag) && !has(s.Not, tag) }

// Untagged reads a union whose arms differ by the members that are present. It uses the
// first shape that fits. If none fits, the error names a member that the nearest arm lacks.
func Untagged[P any](to P, d *Decoder, member string, shapes []Shape, read func(to P, d *Decoder, arm int) error) error {
	raw, arm, err := d.readArm(member, shapes)
	if err != nil {
		return err
	}
	return d.again(raw, func(sub *Decoder) error { return read(to, sub, arm) })
}

// readArm reads an object and returns it with the number of the first shape that fits. If
// only null fits, for which a lenient decoder may have a meaning, the arm decides about it.
func (d *Decoder) readArm(member string, shapes []Shape) (raw []byte, arm int, err error) {
	if raw, err = d.objectValue(); err != nil {
		return nil, 0, err
	}
	tag, names := "", make(names)
	if err := d.again(raw, func(sub *Decoder) error { return sub.readNames(names, member, &tag, shapes) }); err != nil {
		return nil, 0, err
	}
	for _, null := range []bool{false, true} {
		for i, s := range shapes {
			if _, lacks := names.lack(s.Present, null && !d.strict); !lacks && s.admits(tag) {
				return raw, i, nil
			}
		}
	}
	candidates := slices.DeleteFunc(slices.Clone(shapes), func(s Shape) bool { return !s.admits(tag) })
	name, _ := names.lack(candidates[nearest(candidates, names)].Present, false)
	at := d.StackPointer()
	for part := range strings.SplitSeq(name, "/") {
		at = at.AppendToken(part)
	}
	if _, null := names[name]; null {
		return nil, 0, &DecodeError{Path: string(at), Msg: "required, but null"}
	}
	return nil, 0, &DecodeError{Path: string(at), Msg: "required, but absent"}
}

// names are the names of an object's members; the value reports whether the member is not
// null. They include paths of two names where shapes have such paths.
type names map[string]bool

// readNames reads an object's names, and sets tag to the value of member.
func (d *Decoder) readNames(names names, member string, tag *string, shapes []Shape) error {
	name, err := d.Begin()
	for ; name != nil; name, err = d.Next(err) {
		key := string(name)
		kind := d.PeekKind()
		names[key] = kind != 'n'
		switch {
		case key == member && kind == '"':
			err = Str(tag, d)
		case kind == '{' && looksInto(shapes, key):
			err = d.namesWithin(key, names)
		default:
			err = d.SkipValue()
		}
	}
	return err
}

func (d *Decoder) namesWithin(member string, names names) error {
	name, err := d.Begin()
	for ; name != nil; name, err = d.Next(err) {
		names[member+"/"+string(name)] = d.PeekKind() != 'n'
		err = d.SkipValue()
	}
	return err
}

// looksInto reports whether a shape has a path that begins with member.
func looksInto(shapes []Shape, member string) bool {
	return slices.ContainsFunc(shapes, func(s Shape) bool {
		for p := range strings.SplitSeq(s.Present, " ") {
			if first, _, deep := strings.Cut(p, "/"); deep && first == member {
				return true
			}
		}
		return false
	})
}

// lack returns the first of members that is absent, or null unless that is allowed.
func (names names) lack(members string, null bool) (name string, ok bool) {
	for m := range strings.FieldsSeq(members) {
		if there, ok := names[m]; !there && !(ok && null) {
			if first, _, _ := strings.Cut(m, "/"); !names[first] {
				return first, true
			}
			return m, true
		}
	}
	return "", false
}

// nearest returns the arm that fits the names best. These criteria count in order: the
// fewest missing required members, the most required members in another case, the most
// members present, the fewest missing optional members.
func nearest(shapes []Shape, names names) (arm int) {
	there := func(members []string) (n int) {
		for _, m := range members {
			if _, ok := names[m]; ok {
				n++
			}
		}
		return n
	}
	var best [4]int
	for i, s := range shapes {
		must, may := strings.Fields(s.Required), strings.Fields(s.Optional)
		required, optional := there(must), there(may)
		rank := [4]int{required - len(must), misspelled(must, names), required + optional, optional - len(may)}
		if i == 0 || slices.Compare(rank[:], best[:]) > 0 {
			arm, best = i, rank
		}
	}
	return arm
}

// misspelled counts the members that are there in another case.
func misspelled(members []string, names names) (n int) {
	for _, m := range members {
		for name := range names {
			if name != m && strings.EqualFold(name, m) {
				n++
			}
		}
	}
	return n
}

// FirstOf reads an array as the first of several kinds of lists that accepts it. If none
// does, it returns the error with the longest path.
func FirstOf[P any](to P, d *Decoder, reads ...func(P, *Decoder) error) error {
	if d.PeekKind() != '[' {
		return d.Wrong("an array")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	var first error
	for _, read := range reads {
		err := d.again(raw, func(sub *Decoder) error { return read(to, sub) })
		if err == nil {
			return nil
		}
		if first == nil || len(pathOf(err)) > len(pathOf(first)) {
			first = err
		}
	}
	return first
}

func pathOf(err error) string {
	if e, ok := err.(*DecodeError); ok {
		return e.Path
	}
	return ""
}

// AnyOf reads a value as the first of several arms that accepts it. A strict decoder with one
// refuses a value that a second arm accepts. If no arm does, the error is the one with the
// longest path. Every arm is read once, or choices within choices would take exponential time.
func AnyOf[T any](to *T, d *Decoder, one bool, reads ...func(*T, *Decoder) error) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	modes := []bool{true}
	if !d.strict {
		modes = []bool{true, false} // what fits exactly goes before what is tolerated
	}
	var nearest error
	for _, strict := range modes {
		var first *T
		for _, read := range reads {
			err := d.againAs(raw, strict, func(sub *Decoder) error { return read(to, sub) })
			switch {
			case err != nil:
				if nearest == nil || len(pathOf(err)) > len(pathOf(nearest)) {
					nearest = err
				}
			case first != nil:
				return d.Fail("it fits two arms, and may fit only one")
			case one && d.strict:
				first = new(*to)
			default:
				return nil
			}
		}
		if first != nil {
			*to = *first
			return nil
		}
	}
	return nearest
}
