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

// Error is the place at which a value does not follow the schema, and the reason.
type Error struct {
	Path string // JSON pointer to the value or the missing member
	Msg  string
	Err  error // the underlying syntax error, nil if there is none
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// CheckTarget returns an error unless v is a non-nil pointer.
func CheckTarget(v any) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("mcptypes: cannot decode into %T, want a pointer that is not nil", v)
	}
	return nil
}

// NewDecoder returns a decoder for b, which holds one value. Call Release after use.
func NewDecoder(b []byte, strict bool) *Decoder {
	d := newDecoder(b, false)
	d.strict = strict
	return d
}

// Finish turns the error of a read into an [*Error]. If there is none, it checks that
// nothing follows the value.
func (d *Decoder) Finish(err error) error {
	if err == nil {
		err = d.atEnd()
	}
	return asError(err, "")
}

// DecodeFrom reads from the caller's decoder. If that decoder allows duplicate names or
// invalid UTF-8, it only delimits the value, and a strict decoder reads it.
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

	// Set while an object is read whose members belong to two types, see ReadBeside.
	beside  []string // names in the outermost object that the other type reads
	tagName string   // the member that selects the arm of the union
	tag     []byte   // its value, nil before it is read
}

var decoders = sync.Pool{New: func() any {
	buf := new(bytes.Buffer)
	return &Decoder{Decoder: jsontext.NewDecoder(buf), buf: buf}
}}

// unchecked are the options for text that was already checked.
var unchecked = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// newDecoder returns a decoder for b. checked means that b was read before, so that
// duplicates and invalid UTF-8 do not have to be looked for again.
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

// again reads raw, the value that d read last, a second time.
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

// asError turns an error of decoding into an *Error with path before its own path.
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

// Wrong reads the next token and returns an error that it is not what was wanted.
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

// Name reads a member's name, which is valid until the next read.
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

// Lacks returns an error about the first required member that was not seen. Bit i of seen
// stands for names[i].
func (d *Decoder) Lacks(seen uint64, names ...string) error {
	for i, name := range names {
		if seen&(1<<i) == 0 {
			return d.missing(name)
		}
	}
	return nil
}

// Unknown keeps a member without a field in extra.
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

// isBeside reports whether the other type reads this member of the outermost object.
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

// Variant returns before if it is set, otherwise name if it differs only by case from one
// of the guarded names.
func Variant(before string, name []byte, guarded ...string) string {
	for _, g := range guarded {
		if before == "" && bytes.EqualFold(name, []byte(g)) {
			return string(name)
		}
	}
	return before
}

// Ambiguous returns an error about a member of the object that was read last. A reader that
// ignores case would take the member for another one.
func (d *Decoder) Ambiguous(variant string) error {
	return &Error{
		Path: string(d.StackPointer().AppendToken(variant)),
		Msg:  "differs from a member's name only by case",
	}
}

// Unambiguous checks that no unknown member of the object that was read last differs only
// by case from one of names.
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

// Absent reads null in an optional member, unless the decoder is strict. It reports whether
// there was a null.
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
