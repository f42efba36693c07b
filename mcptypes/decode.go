package mcptypes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeError says where and why a value is not what the schema asks for.
type DecodeError struct {
	Path string // JSON pointer (RFC 6901) to the value or the missing member, "" for the whole
	Msg  string // what was expected and what was found
	err  error
}

// Error returns the path and the message.
func (e *DecodeError) Error() string {
	if e.Path == "" {
		return "mcptypes: " + e.Msg
	}
	return "mcptypes: " + e.Path + ": " + e.Msg
}

// JSONPointer returns Path: package jsonrpc tells it to whoever sent the params.
func (e *DecodeError) JSONPointer() string { return e.Path }

// Unwrap returns the underlying syntax error, if there is one: with it
// errors.Is(err, jsontext.ErrDuplicateName) finds a duplicate member.
func (e *DecodeError) Unwrap() error { return e.err }

// Decode reads one JSON value into v, a pointer to a type or to a union of this
// package, and replaces all that v held. Names match exactly; duplicate
// members, invalid UTF-8, missing members, wrong constants and wrong types are
// errors of type [*DecodeError]. A null in an optional member reads as absent,
// and an arm that a tagged union does not know as [*Unknown]; [DecodeStrict]
// refuses both.
func Decode(b []byte, v any) error { return decode(b, v, false) }

// DecodeStrict is [Decode] without its two liberties: null in an optional
// member and unknown union arms are errors.
func DecodeStrict(b []byte, v any) error { return decode(b, v, true) }

// decodable is what every generated type is, by its pointer.
type decodable interface{ decode(*decoder) error }

func decode(b []byte, v any, strict bool) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("mcptypes: cannot decode into %T, want a pointer that is not nil", v)
	}
	target, ok := v.(decodable)
	if !ok {
		if target = unionTarget(v); target == nil {
			return fmt.Errorf("mcptypes: cannot decode into %T", v)
		}
	}
	d := newDecoder(b, false)
	defer d.release()
	d.strict = strict
	err := target.decode(d)
	if err == nil {
		err = d.atEnd()
	}
	return asDecodeError(err, "")
}

// readFunc reads one value of type T.
type readFunc[T any] func(*decoder) (T, error)

// target makes a reader of a union decodable.
type target[T any] struct {
	to   *T
	read readFunc[T]
}

func (t target[T]) decode(d *decoder) (err error) {
	*t.to, err = t.read(d)
	return err
}

// unmarshalFrom decodes from a decoder of the caller's. One that is laxer than
// this package about the text only finds the value's end.
func unmarshalFrom(dec *jsontext.Decoder, v decodable) error {
	opts := dec.Options()
	duplicates, _ := jsonv2.GetOption(opts, jsontext.AllowDuplicateNames)
	badUTF8, _ := jsonv2.GetOption(opts, jsontext.AllowInvalidUTF8)
	if !duplicates && !badUTF8 {
		return v.decode(&decoder{Decoder: dec})
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return asDecodeError(decode(raw, v, false), string(dec.StackPointer()))
}

// decoder is a jsontext.Decoder with the readers that generated code calls.
type decoder struct {
	*jsontext.Decoder
	strict bool
	buf    *bytes.Buffer
}

var decoders = sync.Pool{New: func() any {
	buf := new(bytes.Buffer)
	return &decoder{Decoder: jsontext.NewDecoder(buf), buf: buf}
}}

// unchecked spares a decoder what the first reading has checked.
var unchecked = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// newDecoder returns a decoder for b. A second reading of text that has been
// read before is checked: it need not look for duplicates and bad UTF-8 again.
func newDecoder(b []byte, checked bool) *decoder {
	d := decoders.Get().(*decoder)
	*d.buf = *bytes.NewBuffer(b)
	if checked {
		d.Reset(d.buf, unchecked...)
	} else {
		d.Reset(d.buf)
	}
	return d
}

func (d *decoder) release() {
	*d.buf = bytes.Buffer{}
	d.Reset(d.buf)
	d.strict = false
	decoders.Put(d)
}

// again reads raw, the value that d has read last, a second time.
func again[T any](d *decoder, raw []byte, read readFunc[T]) (T, error) {
	sub := newDecoder(raw, true)
	defer sub.release()
	sub.strict = d.strict
	v, err := read(sub)
	if err != nil {
		return v, asDecodeError(err, string(d.StackPointer()))
	}
	return v, nil
}

// asDecodeError turns what decoding returned into a *DecodeError below path.
func asDecodeError(err error, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*DecodeError); ok {
		return &DecodeError{Path: path + e.Path, Msg: e.Msg, err: e.err}
	}
	var e *jsontext.SyntacticError
	if errors.As(err, &e) {
		return &DecodeError{Path: path + string(e.JSONPointer), Msg: syntaxMessage(e), err: err}
	}
	return &DecodeError{Path: path, Msg: err.Error(), err: err}
}

func syntaxMessage(e *jsontext.SyntacticError) string {
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return "duplicate member"
	}
	return e.Err.Error()
}

// atEnd checks that nothing but white space follows the value.
func (d *decoder) atEnd() error {
	for _, c := range d.UnreadBuffer() {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return &DecodeError{Msg: fmt.Sprintf("found %q after the value", c)}
		}
	}
	return nil
}

// wrong reads the next value far enough to say that it is not what was wanted.
func (d *decoder) wrong(want string) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	return d.fail("want %s, found %s", want, kindName(token.Kind()))
}

// fail returns an error about the value that was read last.
func (d *decoder) fail(format string, args ...any) error {
	return &DecodeError{Path: string(d.StackPointer()), Msg: fmt.Sprintf(format, args...)}
}

// missing returns an error about a member of the object that was read last.
func (d *decoder) missing(name string) error {
	return &DecodeError{
		Path: string(d.StackPointer().AppendToken(name)),
		Msg:  "required, but absent",
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "no value"
}

// begin reads the start of an object.
func (d *decoder) begin() error {
	if d.PeekKind() != '{' {
		return d.wrong("an object")
	}
	_, err := d.ReadToken()
	return err
}

// more reports whether the object or array has not ended yet.
func (d *decoder) more() bool {
	k := d.PeekKind()
	return k != '}' && k != ']'
}

// name reads a member's name; it is good until the next read.
func (d *decoder) name() ([]byte, error) {
	raw, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return jsontext.AppendUnquote(nil, raw)
	}
	return raw[1 : len(raw)-1], nil
}

// end reads the end of an object or array.
func (d *decoder) end() error {
	_, err := d.ReadToken()
	return err
}

// lacks returns an error about the first of an object's required members, bit by
// bit in the order of names, that was not seen.
func (d *decoder) lacks(seen uint64, names ...string) error {
	for i, name := range names {
		if seen&(1<<i) == 0 {
			return d.missing(name)
		}
	}
	return nil
}

// unknown keeps a member that the type does not know.
func (d *decoder) unknown(extra *map[string]json.RawMessage, name []byte) error {
	key := string(name)
	raw, err := d.any()
	if err != nil {
		return err
	}
	if *extra == nil {
		*extra = make(map[string]json.RawMessage)
	}
	(*extra)[key] = raw
	return nil
}

// absent reads a null where null stands for absence.
func (d *decoder) absent() (bool, error) {
	if d.strict || d.PeekKind() != 'n' {
		return false, nil
	}
	_, err := d.ReadToken()
	return true, err
}

// objectValue reads a whole object.
func (d *decoder) objectValue() (jsontext.Value, error) {
	if d.PeekKind() != '{' {
		return nil, d.wrong("an object")
	}
	return d.ReadValue()
}
