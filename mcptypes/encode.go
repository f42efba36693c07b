package mcptypes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the JSON form of v, a value or pointer of this package: one
// line, constants first, then the known members and then the unknown ones,
// each sorted by name. What the schema would refuse is an error that names its
// place: an absent id, a nil union, raw JSON that is none, a known name among
// the unknown members.
func Encode(v any) ([]byte, error) {
	if v, ok := v.(encodable); ok {
		return encode(v)
	}
	return AppendJSON(nil, v)
}

// AppendJSON appends to b what [Encode] returns.
func AppendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case encodable:
		return appendJSON(b, v)
	case json.Marshaler:
		text, err := v.MarshalJSON()
		return append(b, text...), err
	}
	return b, fmt.Errorf("mcptypes: cannot encode %T", v)
}

// encodable is what every generated object is, by its pointer.
type encodable interface{ encode(*encoder) }

// encode is appendJSON into a new slice of the right size. Buffers that have
// grown large are given away rather than kept.
func encode(v encodable) ([]byte, error) {
	const large = 1 << 16
	e := encoders.Get().(*encoder)
	defer e.release()
	v.encode(e)
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

func appendJSON(b []byte, v encodable) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	own := e.b
	e.b = b
	v.encode(e)
	out, err := e.b, e.err
	e.b = own
	if err != nil {
		return b, err
	}
	return out, nil
}

func marshalTo(enc *jsontext.Encoder, v encodable) error {
	b, err := appendJSON(enc.AvailableBuffer(), v)
	if err != nil {
		return err
	}
	return enc.WriteValue(b)
}

// encodeError is an encoder's first error, and where it happened.
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

// encoder appends JSON text. Nothing that is written after the first error
// counts. Every member leaves a comma behind, which the object's end takes.
type encoder struct {
	b   []byte
	err *encodeError
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func (e *encoder) release() {
	e.b, e.err = e.b[:0], nil
	encoders.Put(e)
}

var (
	errNoValue = errors.New("required, but absent")
	errUTF8    = errors.New("string is not UTF-8")
	errNoFloat = errors.New("number has no JSON form")
	errKnown   = errors.New("a known member stands among the unknown ones")
	errObject  = errors.New("want a JSON object")
)

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = &encodeError{err: err}
	}
}

// within says that the error just made lies below name.
func (e *encoder) within(name string) {
	e.err.path = jsontext.Pointer("").AppendToken(name) + e.err.path
}

func (e *encoder) close(end byte) {
	if last := len(e.b) - 1; e.b[last] == ',' {
		e.b[last] = end
		return
	}
	e.b = append(e.b, end)
}

// extra writes the unknown members of an object.
func (e *encoder) extra(extra map[string]json.RawMessage, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(known, name) {
			e.fail(fmt.Errorf("%w: %q", errKnown, name))
			return
		}
		entry(e, name, extra[name], (*encoder).any)
	}
}

// member writes one member of an object. Its name needs no escapes.
func member[T any](e *encoder, name string, v T, write func(*encoder, T)) {
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

// entry is member for a name that the schema does not give.
func entry[T any](e *encoder, name string, v T, write func(*encoder, T)) {
	if e.err != nil {
		return
	}
	if e.string(name); e.err != nil {
		return
	}
	e.b = append(e.b, ':')
	if write(e, v); e.err != nil {
		e.within(name)
		return
	}
	e.b = append(e.b, ',')
}

// maybe writes a member that may be absent.
func maybe[T any](e *encoder, name string, v *T, write func(*encoder, T)) {
	if v != nil {
		member(e, name, *v, write)
	}
}

// writeValue writes an object by pointer, or a union.
func writeValue[T encodable](e *encoder, v T) {
	if any(v) == nil {
		e.fail(errNoValue)
		return
	}
	v.encode(e)
}

// writeObject writes an object by value.
func writeObject[T any, P interface {
	*T
	encodable
}](e *encoder, v T) {
	P(&v).encode(e)
}

func (e *encoder) string(s string) {
	if len(s) > 1024 { // leave room for the escapes, to grow once
		e.b = slices.Grow(e.b, len(s)+len(s)/8)
	}
	b, ok := appendQuote(e.b, s)
	if !ok {
		e.fail(errUTF8)
		return
	}
	e.b = b
}

func writeEnum[T ~string](e *encoder, v T, values []T) {
	if !slices.Contains(values, v) {
		e.fail(fmt.Errorf("want one of %s, have %q", listEnum(values), string(v)))
		return
	}
	e.string(string(v))
}

func (e *encoder) bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

func (e *encoder) int(v int64) { e.b = strconv.AppendInt(e.b, v, 10) }

func (e *encoder) number(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.fail(errNoFloat)
		return
	}
	e.b = jsontext.AppendFloat(e.b, v, 64)
}

// between writes a number that has bounds.
func (e *encoder) between(v, low, high float64) {
	if !(low <= v && v <= high) {
		e.fail(fmt.Errorf("want a number from %v to %v, have %v", low, high, v))
		return
	}
	e.number(v)
}

func (e *encoder) scalar(s scalar) {
	if s.kind == kindAbsent {
		e.fail(errNoValue)
		return
	}
	e.b = s.append(e.b)
}

// any writes raw JSON as it stands, unless it has more than one line.
func (e *encoder) any(raw json.RawMessage) {
	switch {
	case raw == nil:
		e.fail(errNoValue)
	case oneLine(raw) && jsontext.Value(raw).IsValid():
		e.b = append(e.b, bytes.Trim(raw, " \t")...)
	default:
		e.reformat(raw)
	}
}

// oneLine reports whether raw has no line breaks; inside of strings they would
// be escaped.
func oneLine(raw json.RawMessage) bool {
	return bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0
}

// reformat writes raw JSON without white space, its strings and numbers as they
// stand, or says what is wrong with it.
func (e *encoder) reformat(raw json.RawMessage) {
	b, err := jsontext.AppendFormat(e.b, raw, jsontext.PreserveRawStrings(true))
	if err != nil {
		e.fail(err)
		return
	}
	e.b = b
}

func (e *encoder) object(raw json.RawMessage) {
	start := len(e.b)
	if e.any(raw); e.err == nil && e.b[start] != '{' {
		e.fail(errObject)
	}
}

// writeShape writes a raw object after check has walked it.
func writeShape(e *encoder, raw json.RawMessage, check func(*decoder) error) {
	if raw == nil {
		e.fail(errNoValue)
		return
	}
	d := newDecoder(raw, false)
	defer d.release()
	err := check(d)
	if err == nil {
		err = d.atEnd()
	}
	switch at, _ := asDecodeError(err, "").(*DecodeError); {
	case at != nil:
		e.err = &encodeError{jsontext.Pointer(at.Path), errors.New(at.Msg)}
	case oneLine(raw):
		e.b = append(e.b, bytes.Trim(raw, " \t")...)
	default:
		e.reformat(raw)
	}
}

func (e *encoder) members(m map[string]json.RawMessage) {
	writeMap(e, m, (*encoder).any)
}

func writeList[T any](e *encoder, list []T, write func(*encoder, T)) {
	e.b = append(e.b, '[')
	for i, v := range list {
		if write(e, v); e.err != nil {
			e.within(strconv.Itoa(i))
			return
		}
		e.b = append(e.b, ',')
	}
	e.close(']')
}

func writeMap[T any](e *encoder, m map[string]T, write func(*encoder, T)) {
	e.b = append(e.b, '{')
	for _, name := range slices.Sorted(maps.Keys(m)) {
		entry(e, name, m[name], write)
	}
	e.close('}')
}

// writeObjects is writeList for objects, which are written in their place.
func writeObjects[T any, P interface {
	*T
	encodable
}](e *encoder, list []T) {
	e.b = append(e.b, '[')
	for i := range list {
		if P(&list[i]).encode(e); e.err != nil {
			e.within(strconv.Itoa(i))
			return
		}
		e.b = append(e.b, ',')
	}
	e.close(']')
}
