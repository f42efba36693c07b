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
func (d *Decoder) UnknownArm(member string, tag []byte) (name string, raw json.RawMessage, err error) {
	name = string(tag)
	if !d.strict {
		raw, err = d.Object()
		return name, raw, err
	}
	if err := d.SkipValue(); err != nil {
		return "", nil, err
	}
	return "", nil, d.NotKnown(member, name)
}

// NotKnown returns an error about the tag in member of the object that was read last: no
// arm of the union has it.
func (d *Decoder) NotKnown(member, tag string) error {
	return &Error{Path: string(d.StackPointer().AppendToken(member)), Msg: fmt.Sprintf("%q is not known", tag)}
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
func Tagged[T any](d *Decoder, member string, read func(d *Decoder, tag []byte) (T, error)) (T, error) {
	var none T
	if tag, ok := d.peekTag(member); ok {
		v, err := read(d, tag)
		if err != nil {
			return none, err
		}
		return v, nil
	}
	raw, err := d.objectValue()
	if err != nil {
		return none, err
	}
	tag, found, err := d.findTag(raw, member)
	if err != nil {
		return none, err
	}
	if !found {
		return none, d.missing(member)
	}
	v, err := again(d, raw, func(sub *Decoder) (T, error) { return read(sub, tag) })
	if err != nil {
		return none, err
	}
	return v, nil
}

// TaggedOr is Tagged for a union whose member may be absent; that means the tag of the last
// shape. The shapes help to name the missing member.
func TaggedOr[T any](d *Decoder, member string, shapes []Shape, read func(d *Decoder, tag []byte) (T, error)) (T, error) {
	var none T
	raw, err := d.objectValue()
	if err != nil {
		return none, err
	}
	tag, found, err := d.findTag(raw, member)
	if err != nil {
		return none, err
	}
	if !found {
		names, err := again(d, raw, func(sub *Decoder) (map[string]bool, error) { return sub.names("", nil, shapes) })
		if err != nil {
			return none, err
		}
		last := len(shapes) - 1
		if _, lacks := lacking(shapes[last].Required, names); lacks && nearest(shapes, names) != last {
			return none, d.missing(member)
		}
		tag = []byte(shapes[last].Tag)
	}
	v, err := again(d, raw, func(sub *Decoder) (T, error) { return read(sub, tag) })
	if err != nil {
		return none, err
	}
	return v, nil
}

// findTag returns the string value of member in raw, the object that was read last.
func (d *Decoder) findTag(raw []byte, member string) (tag []byte, found bool, err error) {
	tag, err = again(d, raw, func(sub *Decoder) ([]byte, error) {
		if err := sub.Begin(); err != nil {
			return nil, err
		}
		for sub.More() {
			name, err := sub.Name()
			if err != nil {
				return nil, err
			}
			if string(name) == member {
				found = true
				tag, err := sub.scratch("a string")
				return bytes.Clone(tag), err
			}
			if err := sub.SkipValue(); err != nil {
				return nil, err
			}
		}
		return nil, sub.End()
	})
	return tag, found, err
}

// ReadBeside reads an object with its own members and those of a union. own reads the
// members in names and calls SkipBeside for all others. The others are then read as the
// union, whose arm the member tag selects.
func ReadBeside[T any](d *Decoder, tag string, own func(*Decoder) error, read func(d *Decoder, tag []byte) (T, error), names ...string) (T, error) {
	var none T
	raw, err := d.objectValue()
	if err != nil {
		return none, err
	}
	value, err := again(d, raw, func(sub *Decoder) ([]byte, error) {
		sub.tagName = tag
		err := own(sub)
		return sub.tag, err
	})
	if err != nil {
		return none, err
	}
	if value == nil {
		return none, d.missing(tag)
	}
	v, err := again(d, raw, func(sub *Decoder) (T, error) {
		sub.beside = names
		return read(sub, value)
	})
	if err != nil {
		return none, err
	}
	return v, nil
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

// Shape describes an arm of a union. The arm is chosen if all Present members are there
// and, unless Tag is empty, the union's member has the value Tag. A name in Present may be
// a path of two names: items/enum is the member enum of the member items.
type Shape struct {
	Tag      string
	Present  []string
	Required []string
	Optional []string
}

// Untagged reads a union whose arms differ by the members that are present. It uses the
// first shape that fits. If none fits, the error names a member that the nearest arm lacks.
func Untagged[T any](d *Decoder, member string, shapes []Shape, read func(d *Decoder, arm int) (T, error)) (T, error) {
	var none T
	raw, err := d.objectValue()
	if err != nil {
		return none, err
	}
	tag := ""
	names, err := again(d, raw, func(sub *Decoder) (map[string]bool, error) { return sub.names(member, &tag, shapes) })
	if err != nil {
		return none, err
	}
	for i, s := range shapes {
		if _, lacks := lacking(s.Present, names); lacks || s.Tag != "" && s.Tag != tag {
			continue
		}
		v, err := again(d, raw, func(sub *Decoder) (T, error) { return read(sub, i) })
		if err != nil {
			return none, err
		}
		return v, nil
	}
	name, _ := lacking(shapes[nearest(shapes, names)].Present, names)
	at := d.StackPointer()
	for part := range strings.SplitSeq(name, "/") {
		at = at.AppendToken(part)
	}
	if _, null := names[name]; null {
		return none, &Error{Path: string(at), Msg: "required, but null"}
	}
	return none, &Error{Path: string(at), Msg: "required, but absent"}
}

// names returns the names of an object's members; the map's value reports whether the
// member is not null. It includes paths of two names where shapes have such paths. It sets
// tag to the value of member.
func (d *Decoder) names(member string, tag *string, shapes []Shape) (map[string]bool, error) {
	if err := d.Begin(); err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for d.More() {
		name, err := d.Name()
		if err != nil {
			return nil, err
		}
		key := string(name)
		kind := d.PeekKind()
		names[key] = kind != 'n'
		switch {
		case key == member && kind == '"':
			*tag, err = d.Str()
		case kind == '{' && looksInto(shapes, key):
			err = d.namesWithin(key, names)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return nil, err
		}
	}
	return names, d.End()
}

func (d *Decoder) namesWithin(member string, names map[string]bool) error {
	if err := d.Begin(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Name()
		if err != nil {
			return err
		}
		key := member + "/" + string(name)
		names[key] = d.PeekKind() != 'n'
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	return d.End()
}

// looksInto reports whether a shape has a path that begins with member.
func looksInto(shapes []Shape, member string) bool {
	return slices.ContainsFunc(shapes, func(s Shape) bool {
		return slices.ContainsFunc(s.Present, func(p string) bool {
			first, _, deep := strings.Cut(p, "/")
			return deep && first == member
		})
	})
}

// lacking returns the first of members that is absent or null.
func lacking(members []string, names map[string]bool) (name string, ok bool) {
	for _, m := range members {
		if !names[m] {
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
func nearest(shapes []Shape, names map[string]bool) (arm int) {
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
		required, optional := there(s.Required), there(s.Optional)
		rank := [4]int{required - len(s.Required), misspelled(s.Required, names), required + optional, optional - len(s.Optional)}
		if i == 0 || slices.Compare(rank[:], best[:]) > 0 {
			arm, best = i, rank
		}
	}
	return arm
}

// misspelled counts the members that are there in another case.
func misspelled(members []string, names map[string]bool) (n int) {
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
func FirstOf[T any](d *Decoder, reads ...ReadFunc[T]) (T, error) {
	var none T
	if d.PeekKind() != '[' {
		return none, d.Wrong("an array")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return none, err
	}
	var first error
	for _, read := range reads {
		v, err := again(d, raw, read)
		if err == nil {
			return v, nil
		}
		if first == nil || len(pathOf(err)) > len(pathOf(first)) {
			first = err
		}
	}
	return none, first
}

func pathOf(err error) string {
	if e, ok := err.(*Error); ok {
		return e.Path
	}
	return ""
}
