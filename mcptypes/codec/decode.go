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

// DecodeError is the place at which a value does not follow the schema, and the reason.
type DecodeError struct {
	Package string // the package of the type, which Error begins with
	Path    string // JSON pointer (RFC 6901) to the value or the missing member, "" for the root
	Msg     string // what was expected and what was found
	Err     error  // the underlying syntax error, or nil
}

// Error returns the package, the path and the message.
func (e *DecodeError) Error() string {
	text := e.Msg
	for _, before := range []string{e.Path, e.Package} {
		if before != "" {
			text = before + ": " + text
		}
	}
	return text
}

// JSONPointer returns Path. Package jsonrpc reports it to the sender of the params.
func (e *DecodeError) JSONPointer() string { return e.Path }

// Unwrap returns Err, so that errors.Is(err, jsontext.ErrDuplicateName) reports a duplicate
// member.
func (e *DecodeError) Unwrap() error { return e.Err }

// CheckTarget returns an error unless v is a non-nil pointer. pkg is the package that reads.
func CheckTarget(pkg string, v any) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("%s: cannot decode into %T, want a pointer that is not nil", pkg, v)
	}
	return nil
}

// Read reads b, which must hold one value and nothing else. The error is a [*DecodeError] of
// the package pkg.
func Read(pkg string, b []byte, strict bool, into func(*Decoder) error) error {
	d := newDecoder(b, false)
	defer d.Release()
	d.strict = strict
	err := into(d)
	if err == nil {
		err = d.atEnd()
	}
	return inPackage(pkg, asError(err, ""))
}

// inPackage sets the package of an error.
func inPackage(pkg string, err error) error {
	if e, ok := err.(*DecodeError); ok {
		e.Package = pkg
	}
	return err
}

// ReadFrom reads from the caller's decoder. If that decoder allows duplicate names or
// invalid UTF-8, it only delimits the value, and a strict decoder reads it.
func ReadFrom(pkg string, dec *jsontext.Decoder, into func(*Decoder) error) error {
	opts := dec.Options()
	duplicates, _ := jsonv2.GetOption(opts, jsontext.AllowDuplicateNames)
	badUTF8, _ := jsonv2.GetOption(opts, jsontext.AllowInvalidUTF8)
	if !duplicates && !badUTF8 {
		return inPackage(pkg, asError(into(&Decoder{Decoder: dec}), ""))
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return asError(Read(pkg, raw, false, into), string(dec.StackPointer()))
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

// Decoder is a jsontext.Decoder with the readers that generated code calls.
type Decoder struct {
	*jsontext.Decoder
	strict bool
	buf    *bytes.Buffer

	// Set while an object is read whose members belong to two types, see ReadBeside.
	beside  string // names in the outermost object that the other type reads
	tagName string // the member that selects the arm of the union
	tag     []byte // its value, nil before it is read
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
	d.strict, d.beside, d.tagName, d.tag = false, "", "", nil
	decoders.Put(d)
}

// again reads raw, the value that d read last, a second time.
func (d *Decoder) again(raw []byte, read func(*Decoder) error) error {
	return d.againAs(raw, d.strict, read)
}

func (d *Decoder) againAs(raw []byte, strict bool, read func(*Decoder) error) error {
	sub := newDecoder(raw, true)
	defer sub.Release()
	sub.strict = strict
	if err := read(sub); err != nil {
		return asError(err, string(d.StackPointer()))
	}
	return nil
}

// asError turns an error of decoding into a *DecodeError with path before its own path.
func asError(err error, path string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*DecodeError); ok {
		e.Path = path + e.Path
		return e
	}
	var e *jsontext.SyntacticError
	if errors.As(err, &e) {
		return &DecodeError{Path: path + string(e.JSONPointer), Msg: syntaxMessage(e), Err: err}
	}
	return &DecodeError{Path: path, Msg: err.Error(), Err: err}
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
			return &DecodeError{Msg: fmt.Sprintf("found %q after the value", c)}
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
	return &DecodeError{Path: string(d.StackPointer()), Msg: fmt.Sprintf(format, args...)}
}

// missing returns an error about a member of the object that was read last.
func (d *Decoder) missing(name string) error {
	return &DecodeError{Path: string(d.StackPointer().AppendToken(name)), Msg: "required, but absent"}
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

// Begin reads the start of an object and returns what Next returns.
func (d *Decoder) Begin() (name []byte, err error) {
	if err := d.beginObject(); err != nil {
		return nil, err
	}
	return d.Next(nil)
}

// Next returns the name of the next member, which is valid until the next read. At the end
// of the object, which it reads, and if err is not nil, the name is nil.
func (d *Decoder) Next(err error) (name []byte, _ error) {
	switch {
	case err != nil:
		return nil, err
	case d.more():
		return d.name()
	}
	return nil, d.end()
}

// beginObject reads the start of an object.
func (d *Decoder) beginObject() error {
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

// more reports whether the object or array has not ended yet.
func (d *Decoder) more() bool {
	k := d.PeekKind()
	return k != '}' && k != ']'
}

// name reads a member's name, or a string. It is valid until the next read.
func (d *Decoder) name() ([]byte, error) {
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
func (d *Decoder) end() error {
	_, err := d.ReadToken()
	return err
}

// Lacks returns an error about the first required member that was not seen. Bit i of seen
// stands for the name with number i; there are spaces between the names.
func (d *Decoder) Lacks(seen uint64, names string) error {
	for name := range strings.SplitSeq(names, " ") {
		if seen&1 == 0 {
			return d.missing(name)
		}
		seen >>= 1
	}
	return nil
}

// Unknown keeps a member without a field in extra.
func (d *Decoder) Unknown(extra *map[string]json.RawMessage, name []byte) error {
	if d.beside != "" && d.isBeside(name) {
		return d.SkipValue()
	}
	key := string(name)
	var raw json.RawMessage
	if err := Any(&raw, d); err != nil {
		return err
	}
	if *extra == nil {
		*extra = make(map[string]json.RawMessage)
	}
	(*extra)[key] = raw
	return nil
}

// UnknownOf keeps a member without a field in extra, whose values have one type.
func UnknownOf[T any](extra *map[string]T, d *Decoder, name []byte, read func(*T, *Decoder) error) error {
	key, value := string(name), new(T)
	if err := read(value, d); err != nil {
		return err
	}
	if *extra == nil {
		*extra = make(map[string]T)
	}
	(*extra)[key] = *value
	return nil
}

// Closed reads a member that the object may not have. A strict decoder refuses it, any other
// drops it.
func (d *Decoder) Closed() error {
	if err := d.SkipValue(); err != nil || !d.strict {
		return err
	}
	return d.Fail("not a member of this object")
}

// Null reads null, if that comes next, as the value of the member name, and adds the name to
// nulls.
func (d *Decoder) Null(nulls *[]string, name string) (bool, error) {
	if d.PeekKind() != 'n' {
		return false, nil
	}
	*nulls = append(*nulls, name)
	_, err := d.ReadToken()
	return true, err
}

// isBeside reports whether the other type reads this member of the outermost object.
func (d *Decoder) isBeside(name []byte) bool {
	if d.StackDepth() != 1 {
		return false
	}
	return has(d.beside, string(name))
}

// Empty reads an object that has no members.
func (d *Decoder) Empty() error {
	name, err := d.Begin()
	if name == nil || err != nil {
		return err
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return d.Fail("not a member of this object")
}

// Variant returns before if it is set, otherwise name if it differs only by case from one
// of the guarded names, which have spaces between them.
func Variant(before string, name []byte, guarded string) string {
	if before != "" {
		return before
	}
	for g := range strings.SplitSeq(guarded, " ") {
		if strings.EqualFold(g, string(name)) {
			return string(name)
		}
	}
	return ""
}

// Ambiguous returns an error about a member of the object that was read last. A reader that
// ignores case would take the member for another one.
func (d *Decoder) Ambiguous(variant string) error {
	return &DecodeError{
		Path: string(d.StackPointer().AppendToken(variant)),
		Msg:  "differs from a member's name only by case",
	}
}

// Unambiguous checks that no unknown member of the object that was read last differs only
// by case from one of names, which have spaces between them.
func (d *Decoder) Unambiguous(extra map[string]json.RawMessage, names string) error {
	for name := range strings.SplitSeq(names, " ") {
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
