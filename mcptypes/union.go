package mcptypes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Unknown is the arm of a union that this version of the protocol does not
// have, such as a kind of content added later. It stands in every union whose
// arms a member tells apart, and is written back as it was read.
type Unknown struct {
	Tag string          // what the telling member says
	Raw json.RawMessage // the whole object
}

// unknownArm reads an arm whose tag no known arm has.
func unknownArm(d *decoder, member string, tag []byte) (*Unknown, error) {
	name := string(tag)
	if !d.strict {
		raw, err := d.object()
		return &Unknown{Tag: name, Raw: raw}, err
	}
	if err := d.SkipValue(); err != nil {
		return nil, err
	}
	return nil, &DecodeError{
		Path: string(d.StackPointer().AppendToken(member)),
		Msg:  fmt.Sprintf("%q is not known", name),
	}
}

func (v *Unknown) encode(e *encoder) {
	if v == nil {
		e.fail(errNoValue)
		return
	}
	e.object(v.Raw)
}

// MarshalJSON implements [encoding/json.Marshaler].
func (v Unknown) MarshalJSON() ([]byte, error) { return encode(&v) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (v Unknown) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, &v) }

// peekTag returns the string value of member when that is the first member of
// the object ahead and the text is plain and at hand.
func (d *decoder) peekTag(member string) (tag []byte, ok bool) {
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

// tagged reads a union whose arms a member tells apart.
func tagged[T any](d *decoder, member string, read func(d *decoder, tag []byte) (T, error)) (T, error) {
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
	tag, err := again(d, raw, func(sub *decoder) ([]byte, error) { return sub.findTag(member) })
	if err != nil {
		return none, err
	}
	v, err := again(d, raw, func(sub *decoder) (T, error) { return read(sub, tag) })
	if err != nil {
		return none, err
	}
	return v, nil
}

func (d *decoder) findTag(member string) ([]byte, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	for d.more() {
		name, err := d.name()
		if err != nil {
			return nil, err
		}
		if string(name) == member {
			tag, err := d.scratch("a string")
			return bytes.Clone(tag), err
		}
		if err := d.SkipValue(); err != nil {
			return nil, err
		}
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return nil, d.missing(member)
}

// shape is what tells the arms of an untagged union apart: an arm is chosen
// when all of its present members are there.
type shape struct {
	present  []string
	required []string
	optional []string
}

// untagged reads a union whose arms are told apart by the members that are
// there. Without a match the error names what the nearest arm lacks.
func untagged[T any](d *decoder, shapes []shape, read func(d *decoder, arm int) (T, error)) (T, error) {
	var none T
	raw, err := d.objectValue()
	if err != nil {
		return none, err
	}
	names, err := again(d, raw, (*decoder).names)
	if err != nil {
		return none, err
	}
	for i, s := range shapes {
		if _, lacks := lacking(s.present, names); lacks {
			continue
		}
		v, err := again(d, raw, func(sub *decoder) (T, error) { return read(sub, i) })
		if err != nil {
			return none, err
		}
		return v, nil
	}
	name := nearest(shapes, names)
	if _, null := names[name]; null {
		return none, &DecodeError{Path: string(d.StackPointer().AppendToken(name)), Msg: "required, but null"}
	}
	return none, d.missing(name)
}

// names reads the names of an object's members, each with whether its value is
// not null.
func (d *decoder) names() (map[string]bool, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for d.more() {
		name, err := d.name()
		if err != nil {
			return nil, err
		}
		key := string(name)
		names[key] = d.PeekKind() != 'n'
		if err := d.SkipValue(); err != nil {
			return nil, err
		}
	}
	return names, d.end()
}

// lacking returns the first of members that is not there, or null.
func lacking(members []string, names map[string]bool) (name string, ok bool) {
	for _, m := range members {
		if !names[m] {
			return m, true
		}
	}
	return "", false
}

// nearest returns what is lacking of the arm that the names fit best: the one
// with the fewest required members missing, then the most members there, then
// the fewest optional ones missing.
func nearest(shapes []shape, names map[string]bool) (name string) {
	there := func(members []string) (n int) {
		for _, m := range members {
			if _, ok := names[m]; ok {
				n++
			}
		}
		return n
	}
	var best [3]int
	for i, s := range shapes {
		required, optional := there(s.required), there(s.optional)
		rank := [3]int{required - len(s.required), required + optional, optional - len(s.optional)}
		if i == 0 || slices.Compare(rank[:], best[:]) > 0 {
			best = rank
			name, _ = lacking(s.present, names)
		}
	}
	return name
}
