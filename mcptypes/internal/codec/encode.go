package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns what encode writes, in a slice of the exact size. A large buffer is
// returned itself instead of a copy.
func Encode[T any](v T, encode func(T, *Encoder)) ([]byte, error) {
	const large = 1 << 16
	e := encoders.Get().(*Encoder)
	defer e.release()
	encode(v, e)
	switch {
	case e.err != nil:
		return nil, e.err
	case cap(e.b) > large:
		b := e.b
		e.b = nil
		return b, nil
	}
	return bytes.Clone(e.b), nil
}

// Append appends to b what encode writes.
func Append[T any](b []byte, v T, encode func(T, *Encoder)) ([]byte, error) {
	e := encoders.Get().(*Encoder)
	defer e.release()
	own := e.b
	e.b = b
	encode(v, e)
	out, err := e.b, e.err
	e.b = own
	if err != nil {
		return b, err
	}
	return out, nil
}

// EncodeTo writes what encode writes to the caller's encoder.
func EncodeTo[T any](enc *jsontext.Encoder, v T, encode func(T, *Encoder)) error {
	b, err := Append(enc.AvailableBuffer(), v, encode)
	if err != nil {
		return err
	}
	return enc.WriteValue(b)
}

// encodeError is the first error of an Encoder, with its place.
type encodeError struct {
	path jsontext.Pointer
	err  error
}

func (e *encodeError) Error() string {
	if e.path == "" {
		return "mcptypes: encode: " + e.err.Error()
	}
	return fmt.Sprintf("mcptypes: encode: %s: %v", e.path, e.err)
}

func (e *encodeError) Unwrap() error { return e.err }

// Encoder appends JSON text. After the first error its output is not used. Every member
// ends with a comma; the end of the object replaces the last one.
type Encoder struct {
	b   []byte
	err *encodeError
}

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

func (e *Encoder) release() {
	e.b, e.err = e.b[:0], nil
	encoders.Put(e)
}

var (
	ErrNoValue = errors.New("required, but absent")
	errUTF8    = errors.New("string is not UTF-8")
	errNoFloat = errors.New("number has no JSON form")
	errKnown   = errors.New("a known member is among the unknown ones")
	errVariant = errors.New("an unknown member differs from a known one only by case")
	errObject  = errors.New("want a JSON object")
)

// Fail records the first error.
func (e *Encoder) Fail(err error) {
	if e.err == nil {
		e.err = &encodeError{err: err}
	}
}

// within puts name before the path of the error that was just recorded.
func (e *Encoder) within(name string) {
	e.err.path = jsontext.Pointer("").AppendToken(name) + e.err.path
}

// Open begins an object. start is its text up to the first member that is not constant.
func (e *Encoder) Open(start string) { e.b = append(e.b, start...) }

// Close ends an object or array.
func (e *Encoder) Close(end byte) {
	if last := len(e.b) - 1; e.b[last] == ',' {
		e.b[last] = end
		return
	}
	e.b = append(e.b, end)
}

// Extra writes the unknown members of an object.
func (e *Encoder) Extra(extra map[string]json.RawMessage, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(known, name) {
			e.Fail(fmt.Errorf("%w: %q", errKnown, name))
			return
		}
		entry(e, name, extra[name], (*Encoder).Any)
	}
}

// Guard fails for an unknown member that differs only by case from one of the names: a
// reader would refuse the object.
func (e *Encoder) Guard(extra map[string]json.RawMessage, names ...string) {
	for other := range extra {
		for _, name := range names {
			if other != name && strings.EqualFold(other, name) {
				e.Fail(fmt.Errorf("%w: %q", errVariant, other))
			}
		}
	}
}

// Member writes one member of an object. Its name needs no escapes.
func Member[T any](e *Encoder, name string, v T, write func(*Encoder, T)) {
	if e.err != nil {
		return
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
	if write(e, v); e.err != nil {
		e.within(name)
		return
	}
	e.b = append(e.b, ',')
}

// entry is Member for a name that the schema does not define.
func entry[T any](e *Encoder, name string, v T, write func(*Encoder, T)) {
	if e.err != nil {
		return
	}
	if e.Str(name); e.err != nil {
		return
	}
	e.b = append(e.b, ':')
	if write(e, v); e.err != nil {
		e.within(name)
		return
	}
	e.b = append(e.b, ',')
}

// Maybe writes a member that may be absent.
func Maybe[T any](e *Encoder, name string, v *T, write func(*Encoder, T)) {
	if v != nil {
		Member(e, name, *v, write)
	}
}

// MemberOf is Member for types that are encoded in place.
func MemberOf[T any](e *Encoder, name string, v *T, encode func(*T, *Encoder)) {
	if e.err != nil {
		return
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
	if encode(v, e); e.err != nil {
		e.within(name)
		return
	}
	e.b = append(e.b, ',')
}

// Beside adds the members of the object that encode writes to the current object, which
// already has the members names.
func Beside[T any](e *Encoder, v T, encode func(T, *Encoder), extra map[string]json.RawMessage, names ...string) {
	if e.err != nil {
		return
	}
	for name := range extra {
		if slices.Contains(names, name) {
			e.Fail(fmt.Errorf("%w: %q", errKnown, name))
			return
		}
	}
	start := len(e.b)
	if encode(v, e); e.err != nil {
		return
	}
	e.b = append(e.b[:start], e.b[start+1:]...)
	if last := len(e.b) - 1; last == start {
		e.b = e.b[:start] // it had no members
	} else {
		e.b[last] = ','
	}
}

// WriteValue writes a value of a type that is encoded in place.
func WriteValue[T any](e *Encoder, v T, encode func(*T, *Encoder)) { encode(&v, e) }

// WriteUnion writes an arm of a union.
func WriteUnion[T any](e *Encoder, v T, encode func(T, *Encoder)) {
	if any(v) == nil {
		e.Fail(ErrNoValue)
		return
	}
	encode(v, e)
}

// WriteNullable writes a value that may be null.
func WriteNullable[T any](e *Encoder, v *T, write func(*Encoder, T)) {
	if v == nil {
		e.b = append(e.b, "null"...)
		return
	}
	write(e, *v)
}

// Raw writes text that is a valid value.
func (e *Encoder) Raw(v string) { e.b = append(e.b, v...) }

// Str writes a string.
func (e *Encoder) Str(s string) {
	if len(s) > 1024 { // leave room for the escapes, to grow once
		e.b = slices.Grow(e.b, len(s)+len(s)/8)
	}
	b, ok := appendQuote(e.b, s)
	if !ok {
		e.Fail(errUTF8)
		return
	}
	e.b = b
}

// WriteEnum writes one of values.
func WriteEnum[T ~string](e *Encoder, v T, values []T) {
	if !slices.Contains(values, v) {
		e.Fail(fmt.Errorf("want one of %s, have %q", listEnum(values), string(v)))
		return
	}
	e.Str(string(v))
}

// Bool writes a boolean.
func (e *Encoder) Bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

// Int writes an integer.
func (e *Encoder) Int(v int64) { e.b = strconv.AppendInt(e.b, v, 10) }

// Number writes a number.
func (e *Encoder) Number(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.Fail(errNoFloat)
		return
	}
	e.b = jsontext.AppendFloat(e.b, v, 64)
}

// IntBetween writes an integer that has bounds.
func (e *Encoder) IntBetween(v, low, high int64) {
	if v < low || v > high {
		e.Fail(fmt.Errorf("want an integer from %d to %d, have %d", low, high, v))
		return
	}
	e.Int(v)
}

// Between writes a number that has bounds.
func (e *Encoder) Between(v, low, high float64) {
	if !(low <= v && v <= high) {
		e.Fail(fmt.Errorf("want a number from %v to %v, have %v", low, high, v))
		return
	}
	e.Number(v)
}

// Scalar writes an id or a token.
func (e *Encoder) Scalar(s Scalar) {
	if s.kind == kindAbsent {
		e.Fail(ErrNoValue)
		return
	}
	e.b = s.AppendJSON(e.b)
}

// Any writes raw JSON unchanged, unless it has more than one line.
func (e *Encoder) Any(raw json.RawMessage) {
	switch {
	case raw == nil:
		e.Fail(ErrNoValue)
	case oneLine(raw) && jsontext.Value(raw).IsValid():
		e.b = append(e.b, bytes.Trim(raw, " \t")...)
	default:
		e.reformat(raw)
	}
}

// JSON is Any for the schema's JSONValue.
func (e *Encoder) JSON(raw json.RawMessage) { e.Any(raw) }

// Or returns *v, or otherwise if v is nil.
func Or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// oneLine reports whether raw has no line breaks. In strings they are escaped.
func oneLine(raw json.RawMessage) bool {
	return bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0
}

// reformat writes raw JSON without white space. It keeps the text of strings and numbers,
// and records an error if raw is not valid JSON.
func (e *Encoder) reformat(raw json.RawMessage) {
	b, err := jsontext.AppendFormat(e.b, raw, jsontext.PreserveRawStrings(true))
	if err != nil {
		e.Fail(err)
		return
	}
	e.b = b
}

// Object writes raw JSON that is an object.
func (e *Encoder) Object(raw json.RawMessage) {
	start := len(e.b)
	if e.Any(raw); e.err == nil && e.b[start] != '{' {
		e.Fail(errObject)
	}
}

// WriteShape writes a raw object after check has walked it.
func WriteShape(e *Encoder, raw json.RawMessage, check func(*Decoder) error) {
	if raw == nil {
		e.Fail(ErrNoValue)
		return
	}
	d := newDecoder(raw, false)
	defer d.Release()
	err := check(d)
	if err == nil {
		err = d.atEnd()
	}
	switch at, _ := asError(err, "").(*Error); {
	case at != nil:
		e.err = &encodeError{jsontext.Pointer(at.Path), errors.New(at.Msg)}
	case oneLine(raw):
		e.b = append(e.b, bytes.Trim(raw, " \t")...)
	default:
		e.reformat(raw)
	}
}

// Members writes an object member by member.
func (e *Encoder) Members(m map[string]json.RawMessage) {
	WriteMap(e, m, (*Encoder).Any)
}

// WriteList writes an array.
func WriteList[T any](e *Encoder, list []T, write func(*Encoder, T)) {
	e.b = append(e.b, '[')
	for i, v := range list {
		if write(e, v); e.err != nil {
			e.within(strconv.Itoa(i))
			return
		}
		e.b = append(e.b, ',')
	}
	e.Close(']')
}

// WriteMap writes an object whose values have one type, sorted by name.
func WriteMap[T any](e *Encoder, m map[string]T, write func(*Encoder, T)) {
	e.b = append(e.b, '{')
	for _, name := range slices.Sorted(maps.Keys(m)) {
		entry(e, name, m[name], write)
	}
	e.Close('}')
}

// WriteObjects is WriteList for types that are encoded in place.
func WriteObjects[T any](e *Encoder, list []T, encode func(*T, *Encoder)) {
	e.b = append(e.b, '[')
	for i := range list {
		if encode(&list[i], e); e.err != nil {
			e.within(strconv.Itoa(i))
			return
		}
		e.b = append(e.b, ',')
	}
	e.Close(']')
}

// AtMost reports whether a list has at most max elements, and fails otherwise.
func (e *Encoder) AtMost(max, length int) bool {
	if length > max {
		e.Fail(fmt.Errorf("want at most %d elements, have %d", max, length))
	}
	return length <= max
}
