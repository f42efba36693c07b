package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Encoder appends JSON text. After the first error its output is not used. What generated
// code calls for each member is not inlined there, or the programs would be much larger.
type Encoder struct {
	b    []byte
	err  error
	path []step // into the object or array that is being written
	pkg  string // the package of the types, which the error begins with

	keys []string // of the maps that are being written
}

// step is the member or element of one object or array that is being written.
type step struct {
	name  string
	index int // of an element; or one of the constants
}

const (
	member  = -1 // name is that of a member
	between = -2 // none
)

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// NewEncoder returns an encoder for the types of the package pkg. Call Bytes once, and then
// nothing more.
//
//go:noinline
func NewEncoder(pkg string) *Encoder {
	e := encoders.Get().(*Encoder)
	e.pkg = pkg
	return e
}

// Bytes returns the text in a slice of the exact size. A large buffer is returned itself
// instead of a copy.
func (e *Encoder) Bytes() ([]byte, error) {
	const large = 1 << 16
	b, err := e.b, e.err
	switch {
	case err != nil:
		b = nil
	case cap(b) > large:
		e.b = nil
	default:
		b = bytes.Clone(b)
	}
	e.release()
	return b, err
}

func (e *Encoder) release() {
	clear(e.path[:cap(e.path)]) // the names may be long
	clear(e.keys[:cap(e.keys)])
	e.b, e.err, e.path, e.keys = e.b[:0], nil, e.path[:0], e.keys[:0]
	encoders.Put(e)
}

var (
	errNoValue = errors.New("required, but absent")
	errUTF8    = errors.New("string is not UTF-8")
	errNoFloat = errors.New("number has no JSON form")
	errKnown   = errors.New("a known member is among the unknown ones")
	errVariant = errors.New("an unknown member differs from a known one only by case")
	errObject  = errors.New("want a JSON object")
)

// Fail records the first error.
func (e *Encoder) Fail(err error) { e.failAt("", err) }

// failAt records an error at a path within the current value.
func (e *Encoder) failAt(within string, err error) {
	if e.err != nil || err == nil {
		return
	}
	var path []byte
	for _, s := range e.path {
		switch {
		case s.index == member:
			path = appendToken(path, s.name)
		case s.index >= 0:
			path = appendToken(path, strconv.Itoa(s.index))
		}
	}
	place := string(path) + within
	if place != "" {
		place += ": "
	}
	e.err = fmt.Errorf("%s: encode: %s%w", e.pkg, place, err)
}

// Absent records that there is no value.
//
//go:noinline
func (e *Encoder) Absent() { e.Fail(errNoValue) }

// Begin begins an object as Open does, and reports whether it is there.
//
//go:noinline
func (e *Encoder) Begin(there bool, start string) bool {
	if there {
		e.Open(start)
	} else {
		e.Absent()
	}
	return there
}

// Open begins an object or array. start is its text up to the first member that is not
// constant.
//
//go:noinline
func (e *Encoder) Open(start string) {
	e.b = append(e.b, start...)
	e.path = append(e.path, step{index: between})
}

// Close ends an object or array.
//
//go:noinline
func (e *Encoder) Close(end byte) {
	e.b = append(e.b, end)
	e.path = e.path[:len(e.path)-1]
}

// at sets the current member or element.
func (e *Encoder) at(name string, index int) { e.path[len(e.path)-1] = step{name, index} }

// Name begins a member of an object. Its name needs no escapes.
//
//go:noinline
func (e *Encoder) Name(name string) {
	e.at(name, member)
	b := e.comma('{')
	b = append(b, '"')
	b = append(b, name...)
	e.b = append(b, '"', ':')
}

// OptionalStr writes a member that is a string, unless s is nil.
func (e *Encoder) OptionalStr(name string, s *string) {
	if s != nil {
		e.Name(name)
		e.Str(*s)
	}
}

// OptionalMembers writes a member that is an object, unless m is nil.
func (e *Encoder) OptionalMembers(name string, m map[string]json.RawMessage) {
	if m != nil {
		e.Name(name)
		e.Members(m)
	}
}

// OptionalObject writes a member whose type is encoded in place, unless v is nil.
func OptionalObject[T any](e *Encoder, name string, v *T, encode func(*T, *Encoder)) {
	if v != nil {
		e.Name(name)
		encode(v, e)
	}
}

// OptionalValue writes a member, unless v is nil.
func OptionalValue[T any](e *Encoder, name string, v *T, write func(*Encoder, T)) {
	if v != nil {
		e.Name(name)
		write(e, *v)
	}
}

// key is Name for a name that the schema does not define.
func (e *Encoder) key(name string) {
	e.at("", between) // where an error in the name is
	e.b = e.comma('{')
	e.Str(name)
	e.b = append(e.b, ':')
	e.at(name, member)
}

// comma returns the text with a comma, unless start was just written.
func (e *Encoder) comma(start byte) []byte {
	if e.b[len(e.b)-1] == start {
		return e.b
	}
	return append(e.b, ',')
}

// End writes the unknown members of an object, and ends it. known has the names of the
// others, with spaces between them.
func (e *Encoder) End(extra map[string]json.RawMessage, known string) {
	if len(extra) > 0 {
		writeSorted(e, extra, known, (*Encoder).Any)
	}
	e.Close('}')
}

// writeSorted writes members, sorted by name. They must not have a known name.
func writeSorted[T any](e *Encoder, members map[string]T, known string, write func(*Encoder, T)) {
	mark := len(e.keys)
	for name := range members {
		if listed(known, name) {
			e.at("", between)
			e.Fail(fmt.Errorf("%w: %q", errKnown, name))
			return
		}
		e.keys = append(e.keys, name)
	}
	names := e.keys[mark:]
	slices.Sort(names)
	for _, name := range names { // write may move the keys, but does not change these
		e.key(name)
		write(e, members[name])
	}
	e.keys = e.keys[:mark]
}

// listed reports whether names, with spaces between them, has name.
func listed(names, name string) bool {
	for n, rest := word(names); n != ""; n, rest = word(rest) {
		if n == name {
			return true
		}
	}
	return false
}

// word returns the first of several names, with a space between them, and the others.
func word(names string) (first, rest string) {
	first, rest, _ = cut(names, ' ')
	return first, rest
}

// cut is strings.Cut for one character, which takes much less of a program.
func cut(text string, at byte) (before, after string, found bool) {
	if i := strings.IndexByte(text, at); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// Guard fails for an unknown member that differs only by case from one of the names: a
// reader would refuse the object.
func (e *Encoder) Guard(extra map[string]json.RawMessage, names string) {
	for other := range extra {
		for name, rest := word(names); name != ""; name, rest = word(rest) {
			if other != name && strings.EqualFold(other, name) {
				e.at("", between)
				e.Fail(fmt.Errorf("%w: %q", errVariant, other))
			}
		}
	}
}

// Beside adds the members of the object that encode writes to the current object, which
// already has the members names. Those among extra must not have a name of these, and must not
// differ only by case from a guarded one.
func (e *Encoder) Beside(encode func(*Encoder), extra func() map[string]json.RawMessage, names, guarded string) {
	e.at("", between)
	start := len(e.b)
	if encode(e); e.err != nil {
		return
	}
	e.Guard(extra(), guarded)
	for name := range extra() {
		if listed(names, name) {
			e.Fail(fmt.Errorf("%w: %q", errKnown, name))
			return
		}
	}
	switch inner := e.b[start : len(e.b)-1]; {
	case len(inner) == 1: // it had no members
		e.b = e.b[:start]
	case e.b[start-1] == '{':
		e.b = append(e.b[:start], inner[1:]...)
	default:
		inner[0] = ','
		e.b = e.b[:len(e.b)-1]
	}
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
//
//go:noinline
func (e *Encoder) Raw(v string) { e.b = append(e.b, v...) }

// Str writes a string.
func (e *Encoder) Str(s string) {
	if len(s) > 1024 { // leave room for the usual escapes, to grow once
		e.b = slices.Grow(e.b, len(s)+strings.Count(s, "\n")+strings.Count(s, `"`)+strings.Count(s, `\`)+1024)
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
//
//go:noinline
func (e *Encoder) Bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

// Int writes an integer.
//
//go:noinline
func (e *Encoder) Int(v int64) { e.b = strconv.AppendInt(e.b, v, 10) }

// Number writes a number.
func (e *Encoder) Number(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.Fail(errNoFloat)
		return
	}
	e.b = append(e.b, jsontext.Float(v).String()...)
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
		e.Absent()
		return
	}
	e.b = s.AppendJSON(e.b)
}

// Any writes raw JSON unchanged, unless it has more than one line.
func (e *Encoder) Any(raw json.RawMessage) { WriteShape(e, raw, (*Decoder).SkipValue) }

// Or returns *v, or otherwise if v is nil.
func Or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
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
		e.Absent()
		return
	}
	d := newDecoder(raw)
	defer d.release()
	switch f := d.whole(check); {
	case f != nil:
		e.failAt(f.Path(), f)
	case bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0: // in strings they are escaped
		e.b = append(e.b, bytes.Trim(raw, " \t")...)
	default:
		text := bytes.NewBuffer(e.b)
		e.Fail(json.Compact(text, raw))
		e.b = text.Bytes()
	}
}

// Members writes an object member by member.
//
//go:noinline
func (e *Encoder) Members(m map[string]json.RawMessage) {
	WriteMap(e, m, (*Encoder).Any)
}

// WriteList writes an array.
func WriteList[T any](e *Encoder, list []T, write func(*Encoder, T)) {
	e.Open("[")
	for i, v := range list {
		e.item(i)
		write(e, v)
	}
	e.Close(']')
}

// WriteObjects is WriteList for types that are encoded in place.
func WriteObjects[T any](e *Encoder, list []T, encode func(*T, *Encoder)) {
	e.Open("[")
	for i := range list {
		e.item(i)
		encode(&list[i], e)
	}
	e.Close(']')
}

// item begins an element of an array.
func (e *Encoder) item(i int) {
	e.at("", i)
	e.b = e.comma('[')
}

// WriteMap writes an object whose values have one type, sorted by name.
func WriteMap[T any](e *Encoder, m map[string]T, write func(*Encoder, T)) {
	e.Open("{")
	writeSorted(e, m, "", write)
	e.Close('}')
}

// AtMost reports whether a list has at most max elements, and fails otherwise.
func (e *Encoder) AtMost(max, length int) bool {
	if length > max {
		e.Fail(fmt.Errorf("want at most %d elements, have %d", max, length))
	}
	return length <= max
}
