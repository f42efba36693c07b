package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Fault is the first place at which a text is not what was wanted, and the reason.
type Fault struct {
	Msg string
	Err error // the reason for which the text is not JSON, or nil

	names []string // of the members and the numbers of the elements around the place, the innermost first
}

// Error returns the message.
func (f *Fault) Error() string { return f.Msg }

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// Path returns the place as a JSON pointer.
func (f *Fault) Path() string {
	var path []byte
	for _, name := range slices.Backward(f.names) {
		path = appendToken(path, name)
	}
	return string(path)
}

// appendToken adds a name or a number to a JSON pointer (RFC 6901).
func appendToken(path []byte, token string) []byte {
	path = append(path, '/')
	for _, c := range []byte(token) {
		switch c {
		case '~':
			path = append(path, '~', '0')
		case '/':
			path = append(path, '~', '1')
		default:
			path = append(path, c)
		}
	}
	return path
}

// IsTarget reports whether v is a pointer that is not nil.
func IsTarget(v any) bool {
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && !p.IsNil()
}

// Read reads b, which must hold one value and nothing else.
func Read(b []byte, strict bool, into func(*Decoder) error) *Fault {
	d := newDecoder(b)
	defer d.release()
	d.strict = strict
	return d.whole(into)
}

// Into returns a function that reads into to, and clears it after an error.
func Into[T any](to *T, read func(*T, *Decoder) error) func(*Decoder) error {
	return func(d *Decoder) error {
		err := read(to, d)
		if err != nil {
			var none T
			*to = none
		}
		return err
	}
}

// Decoder reads JSON text for generated code. Only [Read] and [ReadFrom] make one.
type Decoder struct {
	text []byte
	list names // see readNames
	state

	recent *recent
}

var decoders = sync.Pool{New: func() any { return &Decoder{recent: new(recent)} }}

func newDecoder(text []byte) *Decoder {
	d := decoders.Get().(*Decoder)
	d.text = text
	return d
}

// release makes the decoder available again.
func (d *Decoder) release() {
	clear(d.list[:cap(d.list)])
	*d = Decoder{list: d.list, state: state{names: d.names[:0]}, recent: d.recent}
	decoders.Put(d)
}

// whole reads the text as one value.
func (d *Decoder) whole(into func(*Decoder) error) *Fault {
	err := into(d)
	if err == nil {
		if d.kind(); d.pos == len(d.text) {
			return nil
		}
		err = fail("found %q after the value", d.text[d.pos])
	}
	if f, ok := err.(*Fault); ok {
		return f
	}
	return &Fault{Msg: err.Error(), Err: err}
}

// within adds the name of a member, or the number of an element, to the place of an error.
func within(err error, name string) error {
	if f, ok := err.(*Fault); ok {
		f.names = append(f.names, name)
	}
	return err
}

// Wrong returns an error that the next value is not what was wanted.
func (d *Decoder) Wrong(want string) error {
	c := d.kind()
	if c != '{' && c != '[' {
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	return fail("want %s, found %s", want, kindName(c))
}

// fail returns an error about the current value.
func fail(format string, args ...any) error {
	return &Fault{Msg: fmt.Sprintf(format, args...)}
}

// missing returns an error about a member of the current object.
func missing(name string) error {
	return within(fail("required, but absent"), name)
}

// ReadObject reads an object. It calls read for each member, with its name, to read its value.
// The members that required names, with spaces between them, must be there.
func (d *Decoder) ReadObject(required string, read func(name []byte) error) error {
	if d.kind() != '{' {
		return d.Wrong("an object")
	}
	variant := d.variant
	d.variant = ""
	o := object{mark: len(d.names)}
	err := d.open()
	if err != nil {
		return err
	}
	for {
		name, err := d.next(&o)
		if err != nil {
			return err
		}
		if name == nil {
			break
		}
		if err := read(name); err != nil {
			return within(err, string(name))
		}
	}
	for member, rest := word(required); member != ""; member, rest = word(rest) {
		if !has(d, &o, member) {
			return missing(member)
		}
	}
	d.names = d.names[:o.mark]
	if d.variant != "" {
		err = within(fail("differs from a member's name only by case"), d.variant)
	}
	d.variant = variant
	return err
}

// Unknown keeps a member without a field in extra.
func (d *Decoder) Unknown(extra *map[string]json.RawMessage, name []byte) error {
	var value json.RawMessage
	if err := Any(&value, d); err != nil {
		return err
	}
	if *extra == nil {
		*extra = make(map[string]json.RawMessage)
	}
	(*extra)[string(name)] = value
	return nil
}

// UnknownBut is Unknown for an object that may have no member whose name differs only by case from
// one of the guarded names, which have spaces between them: a reader that ignores case would take
// it for that one.
func (d *Decoder) UnknownBut(guarded string, extra *map[string]json.RawMessage, name []byte) error {
	d.guard(guarded, name)
	return d.Unknown(extra, name)
}

// guard makes ReadObject fail if name differs only by case from one of the guarded names.
func (d *Decoder) guard(guarded string, name []byte) {
	for g, rest := word(guarded); g != ""; g, rest = word(rest) {
		if d.variant == "" && strings.EqualFold(g, string(name)) {
			d.variant = string(name)
		}
	}
}

// Empty reads an object that has no members.
func (d *Decoder) Empty() error {
	return d.ReadObject("", func([]byte) error {
		if err := d.SkipValue(); err != nil {
			return err
		}
		return fail("not a member of this object")
	})
}

// Absent reads null in an optional member, unless the decoder is strict. It reports whether
// there was a null.
func (d *Decoder) Absent() (bool, error) {
	if d.strict || d.kind() != 'n' {
		return false, nil
	}
	return true, d.literal("null")
}
