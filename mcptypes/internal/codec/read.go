package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Generated code calls these functions to read values.

// Str reads a string.
func (d *Decoder) Str() (string, error) {
	if d.PeekKind() != '"' {
		return "", d.Wrong("a string")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return "", err
	}
	return unquote(raw), nil
}

// unquote returns the text of a JSON string that has been read.
func unquote(raw jsontext.Value) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	b, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)-2), raw)
	return string(b)
}

// ReadString reads a string of a named type.
func ReadString[T ~string](d *Decoder) (T, error) {
	s, err := d.Str()
	return T(s), err
}

// Constant reads a string that must be want.
func (d *Decoder) Constant(want string) error {
	s, err := d.scratch(strconv.Quote(want))
	if err != nil {
		return err
	}
	if string(s) != want {
		return d.Fail("want %q, found %q", want, s)
	}
	return nil
}

// ConstantInt reads an integer that must be want.
func (d *Decoder) ConstantInt(want int64) error {
	n, err := d.Int()
	if err == nil && n != want {
		return d.Fail("want %d, found %d", want, n)
	}
	return err
}

// scratch reads a string that is valid until the next read.
func (d *Decoder) scratch(want string) ([]byte, error) {
	if d.PeekKind() != '"' {
		return nil, d.Wrong(want)
	}
	return d.Name()
}

// ReadEnum reads one of the strings that values lists.
func ReadEnum[T ~string](d *Decoder, values []T) (T, error) {
	if d.PeekKind() != '"' {
		return "", d.Wrong("a string")
	}
	s, err := d.Name()
	if err != nil {
		return "", err
	}
	for _, v := range values {
		if string(s) == string(v) {
			return v, nil
		}
	}
	return "", d.Fail("want one of %s, found %q", listEnum(values), s)
}

func listEnum[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(string(v))
	}
	return strings.Join(quoted, ", ")
}

// Bool reads a boolean.
func (d *Decoder) Bool() (bool, error) {
	if k := d.PeekKind(); k != 't' && k != 'f' {
		return false, d.Wrong("a boolean")
	}
	token, err := d.ReadToken()
	if err != nil {
		return false, err
	}
	return token.Bool(), nil
}

// Scalar reads an id or a token.
func (d *Decoder) Scalar() (Scalar, error) {
	return Parsed(d, "a string or an integer", ParseScalar)
}

// Parsed reads a string or a number with a function that takes its text.
func Parsed[T any](d *Decoder, want string, parse func([]byte) (T, error)) (v T, err error) {
	if k := d.PeekKind(); k != '"' && k != '0' {
		return v, d.Wrong(want)
	}
	raw, err := d.ReadValue()
	if err != nil {
		return v, err
	}
	if v, err = parse(raw); err != nil {
		return v, d.Fail("%s", cmp.Or(errors.Unwrap(err), err)) // without the prefix that names the type
	}
	return v, nil
}

// FormValue reads the value of one field of a form: a string, a boolean or a number. If the
// decoder is strict, a number must be an integer. With lists it also reads an array of
// strings.
func (d *Decoder) FormValue(lists bool) ([]byte, error) {
	switch k := d.PeekKind(); {
	case k == '[' && lists:
		raw, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		return again(d, raw, func(sub *Decoder) ([]byte, error) { return raw, sub.Each((*Decoder).SkipString) })
	case k == '0':
		raw, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if d.strict {
			if _, err := parseInteger(raw); err != nil {
				return nil, d.Fail("want a string, an integer or a boolean, found %.40s", raw)
			}
		}
		return raw, nil
	case k == '"', k == 't', k == 'f':
		return d.ReadValue()
	case lists:
		return nil, d.Wrong("a string, a number, a boolean or an array of strings")
	}
	return nil, d.Wrong("a string, a number or a boolean")
}

// Int reads an integer.
func (d *Decoder) Int() (int64, error) {
	if d.PeekKind() != '0' {
		return 0, d.Wrong("an integer")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return 0, err
	}
	s, err := parseInteger(raw)
	switch {
	case err != nil:
		return 0, d.Fail("want an integer, found %.40s", raw)
	case s.kind != kindInt:
		return 0, d.Fail("want an integer of 64 bits, found a larger one")
	}
	return s.num, nil
}

// IntBetween reads an integer that has bounds.
func (d *Decoder) IntBetween(low, high int64) (int64, error) {
	n, err := d.Int()
	if err == nil && (n < low || n > high) {
		return 0, d.Fail("want an integer from %d to %d, found %d", low, high, n)
	}
	return n, err
}

// Number reads a number.
func (d *Decoder) Number() (float64, error) {
	if d.PeekKind() != '0' {
		return 0, d.Wrong("a number")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, d.Fail("want a number of 64 bits, found a larger one")
	}
	return f, nil
}

// Between reads a number that has bounds.
func (d *Decoder) Between(low, high float64) (float64, error) {
	f, err := d.Number()
	if err != nil {
		return 0, err
	}
	if f < low || f > high {
		return 0, d.Fail("want a number from %v to %v, found %v", low, high, f)
	}
	return f, nil
}

// Any reads a value unchanged.
func (d *Decoder) Any() (json.RawMessage, error) {
	raw, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return append(json.RawMessage(nil), raw...), nil
}

// JSON is Any for the schema's JSONValue. A strict decoder refuses null and fractions in it,
// because the schema does not have them.
func (d *Decoder) JSON() (json.RawMessage, error) {
	raw, err := d.Any()
	if err == nil && d.strict {
		_, err = again(d, raw, func(sub *Decoder) (struct{}, error) { return struct{}{}, sub.checkJSON() })
	}
	return raw, err
}

func (d *Decoder) checkJSON() error {
	switch d.PeekKind() {
	case 'n':
		return d.Wrong("a value other than null")
	case '{':
		return d.EachMember((*Decoder).checkJSON)
	case '[':
		return d.Each((*Decoder).checkJSON)
	case '0':
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if _, err := parseInteger(raw); err != nil {
			return d.Fail("want an integer, found %.40s", raw)
		}
		return nil
	}
	return d.SkipValue()
}

// Object reads an object unchanged.
func (d *Decoder) Object() (json.RawMessage, error) {
	raw, err := d.objectValue()
	if err != nil {
		return nil, err
	}
	return append(json.RawMessage(nil), raw...), nil
}

// Members reads an object member by member.
func (d *Decoder) Members() (map[string]json.RawMessage, error) {
	return ReadMap(d, (*Decoder).Any)
}

// ReadShape reads an object unchanged, after check has walked it.
func ReadShape(d *Decoder, check func(*Decoder) error) (json.RawMessage, error) {
	raw, err := d.Object()
	if err != nil {
		return nil, err
	}
	_, err = again(d, raw, func(sub *Decoder) (struct{}, error) { return struct{}{}, check(sub) })
	return raw, err
}

// ReadPtr reads a value into a new T.
func ReadPtr[T any](d *Decoder, decode func(*T, *Decoder) error) (*T, error) {
	v := new(T)
	if err := decode(v, d); err != nil {
		return nil, err
	}
	return v, nil
}

// ReadValue reads a T and returns it by value, for elements of maps.
func ReadValue[T any](d *Decoder, decode func(*T, *Decoder) error) (v T, err error) {
	err = decode(&v, d)
	return v, err
}

// Optional reads an optional value; null means absent.
func Optional[T any](d *Decoder, read ReadFunc[T]) (*T, error) {
	if null, err := d.Absent(); null || err != nil {
		return nil, err
	}
	return Pointer(d, read)
}

// Pointer reads a value and returns its address.
func Pointer[T any](d *Decoder, read ReadFunc[T]) (*T, error) {
	v, err := read(d)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// OptionalPtr is Optional for types that are decoded in place.
func OptionalPtr[T any](d *Decoder, decode func(*T, *Decoder) error) (*T, error) {
	if null, err := d.Absent(); null || err != nil {
		return nil, err
	}
	return ReadPtr(d, decode)
}

// Nullable reads a value that may be null; null reads as nil.
func Nullable[T any](d *Decoder, read ReadFunc[T]) (*T, error) {
	if d.PeekKind() == 'n' {
		_, err := d.ReadToken()
		return nil, err
	}
	return Pointer(d, read)
}

// OrNil is Optional for types whose zero value means absent.
func OrNil[T any](d *Decoder, read ReadFunc[T]) (v T, err error) {
	if null, err := d.Absent(); null || err != nil {
		return v, err
	}
	return read(d)
}

// ReadList reads an array; an empty one is not nil.
func ReadList[T any](d *Decoder, read ReadFunc[T]) ([]T, error) {
	if err := d.beginList(); err != nil {
		return nil, err
	}
	list := []T{}
	for d.More() {
		v, err := read(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, d.End()
}

// AtMost reads a list of limited length.
func AtMost[T any](d *Decoder, max int, read ReadFunc[[]T]) ([]T, error) {
	list, err := read(d)
	if err == nil && len(list) > max {
		return nil, d.Fail("want at most %d elements, found %d", max, len(list))
	}
	return list, err
}

// ReadObjects is ReadList for types that are decoded in place.
func ReadObjects[T any](d *Decoder, decode func(*T, *Decoder) error) ([]T, error) {
	if err := d.beginList(); err != nil {
		return nil, err
	}
	list := []T{}
	for d.More() {
		var none T
		list = append(list, none)
		if err := decode(&list[len(list)-1], d); err != nil {
			return nil, err
		}
	}
	return list, d.End()
}

// ReadMap reads an object whose values have one type; an empty one is not nil.
func ReadMap[T any](d *Decoder, read ReadFunc[T]) (map[string]T, error) {
	if err := d.Begin(); err != nil {
		return nil, err
	}
	m := make(map[string]T)
	for d.More() {
		name, err := d.Name()
		if err != nil {
			return nil, err
		}
		key := string(name)
		v, err := read(d)
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	return m, d.End()
}

// Each walks an array without keeping it.
func (d *Decoder) Each(walk func(*Decoder) error) error {
	if err := d.beginList(); err != nil {
		return err
	}
	for d.More() {
		if err := walk(d); err != nil {
			return err
		}
	}
	return d.End()
}

// EachMember walks an object without keeping it.
func (d *Decoder) EachMember(walk func(*Decoder) error) error {
	if err := d.Begin(); err != nil {
		return err
	}
	for d.More() {
		if _, err := d.Name(); err != nil {
			return err
		}
		if err := walk(d); err != nil {
			return err
		}
	}
	return d.End()
}

// SkipString walks a string without keeping it.
func (d *Decoder) SkipString() error {
	_, err := d.scratch("a string")
	return err
}

// SkipObject walks an object without keeping it.
func (d *Decoder) SkipObject() error {
	_, err := d.objectValue()
	return err
}
