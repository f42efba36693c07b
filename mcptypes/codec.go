package mcptypes

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one JSON value into v, a pointer to a type or to a union of this package.
// It replaces the old value of v. Names match exactly. Duplicate members, invalid UTF-8,
// missing members, wrong constants and wrong types are errors of type [*DecodeError]. null
// in an optional member means absent, and a union value with an unknown tag becomes
// [*Unknown]; [DecodeStrict] refuses both.
//
// The UnmarshalJSON of a type does the same. With it, but not with Decode, the linker leaves
// out the types that a program does not use.
func Decode(b []byte, v any) error { return decode(b, v, false) }

// DecodeStrict is [Decode] without the two exceptions: null in an optional member and
// unknown tags are errors.
func DecodeStrict(b []byte, v any) error { return decode(b, v, true) }

// decodable is implemented by pointers to all generated types.
type decodable interface {
	decode(*codec.Decoder) error
}

func decode(b []byte, v any, strict bool) error {
	if err := codec.CheckTarget(v); err != nil {
		return err
	}
	if v, ok := v.(decodable); ok {
		return read(b, strict, v.decode)
	}
	into := target(v)
	if into == nil {
		return fmt.Errorf("mcptypes: cannot decode into %T", v)
	}
	return read(b, strict, into)
}

// unmarshal is [Decode] for a type with a decode method.
func unmarshal(b []byte, v decodable) error {
	if err := codec.CheckTarget(v); err != nil {
		return err
	}
	return read(b, false, v.decode)
}

func read(b []byte, strict bool, into func(*codec.Decoder) error) error {
	d := codec.NewDecoder(b, strict)
	defer d.Release()
	return asDecodeError(d.Finish(into(d)))
}

func unmarshalFrom(dec *jsontext.Decoder, v decodable) error {
	return asDecodeError(codec.DecodeFrom(dec, v.decode))
}

func asDecodeError(err error) error {
	if e, ok := err.(*codec.Error); ok {
		return &DecodeError{Path: e.Path, Msg: e.Msg, Err: e.Err}
	}
	return err
}

// Encode returns the JSON form of v, a value or pointer of this package, on one line.
// Constants come first, then the known members, then the unknown ones, each sorted by name.
// Encode fails if v violates the schema, and names the place: an absent id, a nil union,
// invalid raw JSON, a known name among the unknown members.
func Encode(v any) ([]byte, error) {
	if v, ok := v.(encodable); ok {
		e := codec.NewEncoder()
		v.encode(e)
		return e.Bytes()
	}
	return AppendJSON(nil, v)
}

// AppendJSON appends the result of [Encode] to b.
func AppendJSON(b []byte, v any) ([]byte, error) {
	write := plain(v)
	if v, ok := v.(encodable); ok {
		write = v.encode
	}
	if write != nil {
		e := codec.NewAppender(b)
		write(e)
		return e.Bytes()
	}
	if v, ok := v.(json.Marshaler); ok {
		text, err := v.MarshalJSON()
		return append(b, text...), err
	}
	return b, fmt.Errorf("mcptypes: cannot encode %T", v)
}

// encodable is implemented by pointers to all generated objects.
type encodable interface {
	encode(*codec.Encoder)
}

// Unknown is a union value with a tag that this version of the protocol does not have, such
// as a kind of content that a later version added. Every union whose arms differ by a
// constant member accepts it. It is written back unchanged.
type Unknown struct {
	Tag string          // the value of the member that selects the arm
	Raw json.RawMessage // the whole object
}

func (v *Unknown) encode(e *codec.Encoder) {
	if v == nil {
		e.Absent()
		return
	}
	e.Object(v.Raw)
}

// MarshalJSON implements [encoding/json.Marshaler].
func (v Unknown) MarshalJSON() ([]byte, error) {
	e := codec.NewEncoder()
	v.encode(e)
	return e.Bytes()
}

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (v Unknown) MarshalJSONTo(enc *jsontext.Encoder) error {
	e := codec.NewEncoder()
	v.encode(e)
	return e.WriteTo(enc)
}
