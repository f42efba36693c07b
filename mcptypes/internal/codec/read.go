package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// Generated code calls these functions to read values. After an error the target is not
// used.

// Str reads a string.
func Str(to *string, d *Decoder) error {
	if d.kind() != '"' {
		return d.Wrong("a string")
	}
	start := d.pos + 1
	escaped, err := d.skipString()
	if err != nil {
		return err
	}
	if raw := d.text[start : d.pos-1]; escaped {
		*to = unquote(raw)
	} else {
		*to = d.recent.text(raw)
	}
	return nil
}

// ReadString reads a string of a named type.
func ReadString[T ~string](to *T, d *Decoder) error {
	var s string
	err := Str(&s, d)
	*to = T(s)
	return err
}

// Constant reads a string that must be want.
func (d *Decoder) Constant(want string) error {
	if d.kind() != '"' {
		return d.Wrong(strconv.Quote(want))
	}
	s, err := d.scratch()
	if err == nil && string(s) != want {
		return fail("want %q, found %q", want, s)
	}
	return err
}

// ConstantInt reads an integer that must be want.
func (d *Decoder) ConstantInt(want int64) error {
	var n int64
	err := Int(&n, d)
	if err == nil && n != want {
		return fail("want %d, found %d", want, n)
	}
	return err
}

// scratch reads a string that is not kept.
func (d *Decoder) scratch() ([]byte, error) {
	if d.kind() != '"' {
		return nil, d.Wrong("a string")
	}
	s := span{start: d.pos + 1}
	var err error
	if s.escaped, err = d.skipString(); err != nil {
		return nil, err
	}
	s.end = d.pos - 1
	return d.nameAt(s), nil
}

// ReadEnum reads one of the strings that values lists.
func ReadEnum[T ~string](to *T, d *Decoder, values []T) error {
	s, err := d.scratch()
	if err != nil {
		return err
	}
	i := slices.Index(values, T(s))
	if i < 0 {
		return fail("want one of %s, found %q", listEnum(values), s)
	}
	*to = values[i]
	return nil
}

func listEnum[T ~string](values []T) (list string) {
	for i, v := range values {
		if i > 0 {
			list += ", "
		}
		list += strconv.Quote(string(v))
	}
	return list
}

// Bool reads a boolean.
func Bool(to *bool, d *Decoder) error {
	switch d.kind() {
	case 't':
		*to = true
		return d.literal("true")
	case 'f':
		*to = false
		return d.literal("false")
	}
	return d.Wrong("a boolean")
}

// ReadScalar reads an id or a token.
func ReadScalar(to *Scalar, d *Decoder) error {
	return Parsed(to, d, func(raw []byte) (Scalar, error) {
		if raw[0] == '"' {
			return StringScalar(Unquote(raw)), nil
		}
		return parseInteger(raw)
	})
}

// Parsed reads a string or an integer with a function that takes its text.
func Parsed[T any](to *T, d *Decoder, parse func([]byte) (T, error)) error {
	if k := d.kind(); k != '"' && !isNumber(k) {
		return d.Wrong("a string or an integer")
	}
	raw, err := d.raw()
	if err != nil {
		return err
	}
	if *to, err = parse(raw); err != nil {
		return fail("%s", cmp.Or(errors.Unwrap(err), err)) // without the prefix that names the type
	}
	return nil
}

// FormValue reads the value of one field of a form: a string, a boolean or a number. If the
// decoder is strict, a number must be an integer. With lists it also reads an array of
// strings.
func (d *Decoder) FormValue(lists bool) ([]byte, error) {
	switch k := d.kind(); {
	case k == '[' && lists:
		start := d.pos
		err := d.Each((*Decoder).SkipString)
		return d.text[start:d.pos], err
	case isNumber(k):
		raw, err := d.raw()
		if err != nil {
			return nil, err
		}
		if d.strict {
			if _, err := parseInteger(raw); err != nil {
				return nil, fail("want a string, an integer or a boolean, found %.40s", raw)
			}
		}
		return raw, nil
	case k == '"', k == 't', k == 'f':
		return d.raw()
	case lists:
		return nil, d.Wrong("a string, a number, a boolean or an array of strings")
	}
	return nil, d.Wrong("a string, a number or a boolean")
}

// Int reads an integer.
func Int(to *int64, d *Decoder) error {
	if !isNumber(d.kind()) {
		return d.Wrong("an integer")
	}
	raw, err := d.raw()
	if err != nil {
		return err
	}
	s, err := parseInteger(raw)
	switch {
	case err != nil:
		return fail("want an integer, found %.40s", raw)
	case s.kind != kindInt:
		return fail("want an integer of 64 bits, found a larger one")
	}
	*to = s.num
	return nil
}

// IntBetween reads an integer that has bounds.
func IntBetween(to *int64, d *Decoder, low, high int64) error {
	err := Int(to, d)
	if n := *to; err == nil && (n < low || n > high) {
		return fail("want an integer from %d to %d, found %d", low, high, n)
	}
	return err
}

// Number reads a number.
func Number(to *float64, d *Decoder) error {
	if !isNumber(d.kind()) {
		return d.Wrong("a number")
	}
	raw, err := d.raw()
	if err != nil {
		return err
	}
	if *to, err = strconv.ParseFloat(string(raw), 64); err != nil {
		return fail("want a number of 64 bits, found a larger one")
	}
	return nil
}

// Between reads a number that has bounds.
func Between(to *float64, d *Decoder, low, high float64) error {
	err := Number(to, d)
	if f := *to; err == nil && (f < low || f > high) {
		return fail("want a number from %v to %v, found %v", low, high, f)
	}
	return err
}

// Any reads a value unchanged.
func Any(to *json.RawMessage, d *Decoder) error {
	return ReadShape(to, d, (*Decoder).SkipValue)
}

// JSON is Any for the schema's JSONValue. A strict decoder refuses null and fractions in it,
// because the schema does not have them.
func JSON(to *json.RawMessage, d *Decoder) error {
	if d.strict {
		return ReadShape(to, d, (*Decoder).checkJSON)
	}
	return Any(to, d)
}

func (d *Decoder) checkJSON() error {
	switch d.kind() {
	case 'n':
		return d.Wrong("a value other than null")
	case '{':
		return d.EachMember((*Decoder).checkJSON)
	case '[':
		return d.Each((*Decoder).checkJSON)
	case '"', 't', 'f':
		return d.SkipValue()
	}
	raw, err := d.raw()
	if err != nil {
		return err
	}
	if _, err := parseInteger(raw); err != nil {
		return fail("want an integer, found %.40s", raw)
	}
	return nil
}

// Object reads an object unchanged.
func Object(to *json.RawMessage, d *Decoder) error {
	return ReadShape(to, d, (*Decoder).SkipObject)
}

// Members reads an object member by member.
func Members(to *map[string]json.RawMessage, d *Decoder) error {
	return ReadMap(to, d, Any)
}

// ReadShape reads an object unchanged, after check has walked it.
func ReadShape(to *json.RawMessage, d *Decoder, check func(*Decoder) error) error {
	d.kind()
	start := d.pos
	err := check(d)
	if err == nil {
		*to = bytes.Clone(d.text[start:d.pos])
	}
	return err
}

// Optional reads an optional value; null means absent.
func Optional[T any](to **T, d *Decoder, read func(*T, *Decoder) error) error {
	if null, err := d.Absent(); null || err != nil {
		return err
	}
	return Pointer(to, d, read)
}

// Pointer reads a value into a new T.
func Pointer[T any](to **T, d *Decoder, read func(*T, *Decoder) error) error {
	*to = new(T)
	return read(*to, d)
}

// Nullable reads a value that may be null; null reads as nil.
func Nullable[T any](to **T, d *Decoder, read func(*T, *Decoder) error) error {
	if d.kind() == 'n' {
		*to = nil
		return d.literal("null")
	}
	return Pointer(to, d, read)
}

// OrNil is Optional for types whose zero value means absent.
func OrNil[P any](to P, d *Decoder, read func(P, *Decoder) error) error {
	if null, err := d.Absent(); null || err != nil {
		return err
	}
	return read(to, d)
}

// ListOrNull reads an array of at most max elements, or of any number if max is 0. null reads
// as an empty one, unless the decoder is strict: a Go program without elements often sends
// it.
func ListOrNull[T any](to *[]T, d *Decoder, max int, read func(*T, *Decoder) error) error {
	null, err := d.Absent()
	if null || err != nil {
		*to = []T{}
		return err
	}
	if err = ReadList(to, d, read); err == nil && max > 0 && len(*to) > max {
		return fail("want at most %d elements, found %d", max, len(*to))
	}
	return err
}

// ReadList reads an array; an empty one is not nil.
func ReadList[T any](to *[]T, d *Decoder, read func(*T, *Decoder) error) error {
	const few = 16
	list := []T{}
	start := d.pos
	err := d.Each(func(d *Decoder) error {
		if n := len(list); n >= few && n == cap(list) {
			list = slices.Grow(list, d.further(start, n))
		}
		var none T
		list = append(list, none)
		return read(&list[len(list)-1], d)
	})
	*to = list
	return err
}

// further estimates how many elements an array that began at start has after the first n.
func (d *Decoder) further(start, n int) int {
	size := (d.pos-start)/n + 1
	return min(max((len(d.text)-d.pos)/size, n/4)+1, 8*n)
}

// ReadMap reads an object whose values have one type; an empty one is not nil.
func ReadMap[T any](to *map[string]T, d *Decoder, read func(*T, *Decoder) error) error {
	var value, none T // value is allocated once
	*to = make(map[string]T)
	return d.ReadObject("", func(name []byte) error {
		value = none
		err := read(&value, d)
		if err == nil {
			(*to)[string(name)] = value
		}
		return err
	})
}

// Each reads an array; read reads an element.
func (d *Decoder) Each(read func(*Decoder) error) error {
	if d.kind() != '[' {
		return d.Wrong("an array")
	}
	if err := d.open(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if more, err := d.element(n); !more || err != nil {
			return err
		}
		if err := read(d); err != nil {
			return within(err, strconv.Itoa(n))
		}
	}
}

// IsList reports whether an array comes next.
func (d *Decoder) IsList() bool { return d.kind() == '[' }

// EachMember walks an object without keeping it.
func (d *Decoder) EachMember(walk func(*Decoder) error) error {
	return d.ReadObject("", func([]byte) error { return walk(d) })
}

// SkipString walks a string without keeping it.
func (d *Decoder) SkipString() error {
	_, err := d.scratch()
	return err
}

// SkipSchema walks a JSON schema without keeping it: an object or, unless the decoder is
// strict, a boolean.
func (d *Decoder) SkipSchema() error {
	if k := d.kind(); !d.strict && (k == 't' || k == 'f') {
		return d.SkipValue()
	}
	return d.SkipObject()
}

// SkipObject walks an object without keeping it.
func (d *Decoder) SkipObject() error {
	if d.kind() != '{' {
		return d.Wrong("an object")
	}
	return d.SkipValue()
}
