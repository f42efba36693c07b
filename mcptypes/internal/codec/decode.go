package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error says where and why a value is not what the schema asks for.
type Error struct {
	Path string // JSON pointer to the value or the missing member
	Msg  string
	Err  error // the underlying syntax error, nil if there is none
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// CheckTarget reports an error for what cannot be decoded into.
func CheckTarget(v any) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("mcptypes: cannot decode into %T, want a pointer that is not nil", v)
	}
	return nil
}

// NewDecoder returns a decoder for b, which holds one value. Release takes it
// back.
func NewDecoder(b []byte, strict bool) *Decoder {
	d := newDecoder(b, false)
	d.strict = strict
	return d
}

// Finish takes the error of the reading and returns an [*Error], also where
// something follows the value.
func (d *Decoder) Finish(err error) error {
	if err == nil {
		err = d.atEnd()
	}
	return asError(err, "")
}

// DecodeFrom reads from a decoder of the caller's. One that is laxer than this
// package about the text only finds the value's end.
func DecodeFrom(dec *jsontext.Decoder, read func(*Decoder) error) error {
	opts := dec.Options()
	duplicates, _ := jsonv2.GetOption(opts, jsontext.AllowDuplicateNames)
	badUTF8, _ := jsonv2.GetOption(opts, jsontext.AllowInvalidUTF8)
	if !duplicates && !badUTF8 {
		return asError(read(&Decoder{Decoder: dec}), "")
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	d := NewDecoder(raw, false)
	defer d.Release()
	return asError(d.Finish(read(d)), string(dec.StackPointer()))
}

// ReadFunc reads one value of type T.
type ReadFunc[T any] func(*Decoder) (T, error)

// Into returns a reader that stores what read returns.
func Into[T any](to *T, read ReadFunc[T]) func(*Decoder) error {
	return func(d *Decoder) (err error) {
		*to, err = read(d)
		return err
	}
}

// Decoder is a jsontext.Decoder with the readers that generated code calls.
type Decoder struct {
	*jsontext.Decoder
	strict bool
	buf    *bytes.Buffer

	// While an object is read whose members belong to two types, see ReadBeside.
	beside  []string // names of the outermost object that the other type reads
	tagName string   // the member that selects the arm of the union
	tag     []byte   // its value, nil before it is read
}

var decoders = sync.Pool{New: func() any {
	buf := new(bytes.Buffer)
	return &Decoder{Decoder: jsontext.NewDecoder(buf), buf: buf}
}}

// unchecked spares a decoder what the first reading has checked.
var unchecked = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// newDecoder returns a decoder for b. A second reading of text that has been
// read before is checked: it need not look for duplicates and bad UTF-8 again.
func newDecoder(b []byte, checked bool) *Decoder {
	d := decoders.Get().(*Decoder)
	*d.buf = *bytes.NewBuffer(b)
	if checked {
		d.Reset(d.buf, unchecked...)
	} else {
		d.Reset(d.buf)
	}
	return d
}

// Release makes the decoder available again.
func (d *Decoder) Release() {
	*d.buf = bytes.Buffer{}
	d.Reset(d.buf)
	d.strict, d.beside, d.tagName, d.tag = false, nil, "", nil
	decoders.Put(d)
}

// again reads raw, the value that d has read last, a second time.
func again[T any](d *Decoder, raw []byte, read ReadFunc[T]) (T, error) {
	sub := newDecoder(raw, true)
	defer sub.Release()
	sub.strict = d.strict
	v, err := read(sub)
	if err != nil {
		return v, asError(err, string(d.StackPointer()))
	}
	return v, nil
}

// asError turns what decoding returned into an *Error below path.
func asError(err error, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		return &Error{Path: path + e.Path, Msg: e.Msg, Err: e.Err}
	}
	var e *jsontext.SyntacticError
	if errors.As(err, &e) {
		return &Error{Path: path + string(e.JSONPointer), Msg: syntaxMessage(e), Err: err}
	}
	return &Error{Path: path, Msg: err.Error(), Err: err}
}

func syntaxMessage(e *jsontext.SyntacticError) string {
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return "duplicate member"
	}
	return e.Err.Error()
}

// atEnd checks that nothing but white space follows the value.
func (d *Decoder) atEnd() error {
	for _, c := range d.UnreadBuffer() {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return &Error{Msg: fmt.Sprintf("found %q after the value", c)}
		}
	}
	return nil
}

// Wrong reads the next value far enough to say that it is not what was wanted.
func (d *Decoder) Wrong(want string) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	return d.Fail("want %s, found %s", want, kindName(token.Kind()))
}

// Fail returns an error about the value that was read last.
func (d *Decoder) Fail(format string, args ...any) error {
	return &Error{Path: string(d.StackPointer()), Msg: fmt.Sprintf(format, args...)}
}

// missing returns an error about a member of the object that was read last.
func (d *Decoder) missing(name string) error {
	return &Error{Path: string(d.StackPointer().AppendToken(name)), Msg: "required, but absent"}
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

// Begin reads the start of an object.
func (d *Decoder) Begin() error {
	if d.PeekKind() != '{' {
		return d.Wrong("an object")
	}
	_, err := d.ReadToken()
	return err
}

// beginList reads the start of an array.
func (d *Decoder) beginList() error {
	if d.PeekKind() != '[' {
		return d.Wrong("an array")
	}
	_, err := d.ReadToken()
	return err
}

// More reports whether the object or array has not ended yet.
func (d *Decoder) More() bool {
	k := d.PeekKind()
	return k != '}' && k != ']'
}

// Name reads a member's name; it is good until the next read.
func (d *Decoder) Name() ([]byte, error) {
	raw, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return jsontext.AppendUnquote(nil, raw)
	}
	return raw[1 : len(raw)-1], nil
}

// End reads the end of an object or array.
func (d *Decoder) End() error {
	_, err := d.ReadToken()
	return err
}

// Lacks returns an error about the first of an object's required members, bit by
// bit in the order of names, that was not seen.
func (d *Decoder) Lacks(seen uint64, names ...string) error {
	for i, name := range names {
		if seen&(1<<i) == 0 {
			return d.missing(name)
		}
	}
	return nil
}

// Unknown keeps a member that the type does not know.
func (d *Decoder) Unknown(extra *map[string]json.RawMessage, name []byte) error {
	if d.beside != nil && d.isBeside(name) {
		return d.SkipValue()
	}
	key := string(name)
	raw, err := d.Any()
	if err != nil {
		return err
	}
	if *extra == nil {
		*extra = make(map[string]json.RawMessage)
	}
	(*extra)[key] = raw
	return nil
}

// isBeside reports whether a member of the outermost object belongs to another
// type.
func (d *Decoder) isBeside(name []byte) bool {
	if d.StackDepth() != 1 {
		return false
	}
	return slices.Contains(d.beside, string(name))
}

// Empty reads an object that has no members.
func (d *Decoder) Empty() error {
	if err := d.Begin(); err != nil {
		return err
	}
	if !d.More() {
		return d.End()
	}
	if _, err := d.Name(); err != nil {
		return err
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return d.Fail("not a member of this object")
}

// Variant returns name when it differs from one of the guarded names by case
// alone, else what was found before.
func Variant(before string, name []byte, guarded ...string) string {
	for _, g := range guarded {
		if before == "" && bytes.EqualFold(name, []byte(g)) {
			return string(name)
		}
	}
	return before
}

// Ambiguous returns an error about a member of the object that was read last:
// readers that ignore case would take it for another.
func (d *Decoder) Ambiguous(variant string) error {
	return &Error{
		Path: string(d.StackPointer().AppendToken(variant)),
		Msg:  "differs from a member's name by case alone",
	}
}

// Unambiguous checks that the unknown members of the object that was read last have no
// variant of names that differs by case alone.
func (d *Decoder) Unambiguous(extra map[string]json.RawMessage, names ...string) error {
	for _, name := range names {
		if extra[name] == nil {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(extra)) {
			if other != name && strings.EqualFold(other, name) {
				return d.Ambiguous(other)
			}
		}
	}
	return nil
}

// Absent reads a null where null stands for absence.
func (d *Decoder) Absent() (bool, error) {
	if d.strict || d.PeekKind() != 'n' {
		return false, nil
	}
	_, err := d.ReadToken()
	return true, err
}

// objectValue reads a whole object.
func (d *Decoder) objectValue() (jsontext.Value, error) {
	if d.PeekKind() != '{' {
		return nil, d.Wrong("an object")
	}
	return d.ReadValue()
}

// Parse reads raw, which holds one value.
func Parse[T any](raw []byte, read ReadFunc[T]) (T, error) {
	d := NewDecoder(raw, false)
	defer d.Release()
	v, err := read(d)
	return v, d.Finish(err)
}
