package mcptypes

import (
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
	"github.com/go-json-experiment/json/jsontext"
)

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
type decodable interface {
	decode(*codec.Decoder) error
}

func decode(b []byte, v any, strict bool) error {
	if err := codec.CheckTarget(v); err != nil {
		return err
	}
	d := codec.NewDecoder(b, strict)
	defer d.Release()
	if v, ok := v.(decodable); ok {
		return asDecodeError(d.Finish(v.decode(d)))
	}
	read := target(v)
	if read == nil {
		return fmt.Errorf("mcptypes: cannot decode into %T", v)
	}
	return asDecodeError(d.Finish(read(d)))
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

// Encode returns the JSON form of v, a value or pointer of this package: one line,
// constants first, then the known members and then the unknown ones, each sorted by name.
// It fails where the schema would, and names the place: an absent id, a nil union,
// invalid raw JSON, a known name among the unknown members.
func Encode(v any) ([]byte, error) {
	if v, ok := v.(encodable); ok {
		return codec.Encode(v, encodable.encode)
	}
	return AppendJSON(nil, v)
}

// AppendJSON appends to b what [Encode] returns.
func AppendJSON(b []byte, v any) ([]byte, error) {
	if v, ok := v.(encodable); ok {
		return codec.Append(b, v, encodable.encode)
	}
	if write := plain(v); write != nil {
		return codec.Append(b, v, func(_ any, e *codec.Encoder) { write(e) })
	}
	if v, ok := v.(json.Marshaler); ok {
		text, err := v.MarshalJSON()
		return append(b, text...), err
	}
	return b, fmt.Errorf("mcptypes: cannot encode %T", v)
}

// encodable is what every generated object is, by its pointer.
type encodable interface {
	encode(*codec.Encoder)
}

// Unknown is the arm of a union that this version of the protocol does not have, such as
// a kind of content added later. Every union whose arms differ by a constant member has
// it, and writes it back as it was read.
type Unknown struct {
	Tag string          // the value of the member that names the arm
	Raw json.RawMessage // the whole object
}

// unknownArm reads an arm whose tag no known arm has.
func unknownArm(d *codec.Decoder, member string, tag []byte) (*Unknown, error) {
	name, raw, err := d.UnknownArm(member, tag)
	return &Unknown{Tag: name, Raw: raw}, err
}

func (v *Unknown) encode(e *codec.Encoder) {
	if v == nil {
		e.Fail(codec.ErrNoValue)
		return
	}
	e.Object(v.Raw)
}

// MarshalJSON implements [encoding/json.Marshaler].
func (v Unknown) MarshalJSON() ([]byte, error) { return codec.Encode(&v, (*Unknown).encode) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (v Unknown) MarshalJSONTo(enc *jsontext.Encoder) error {
	return codec.EncodeTo(enc, &v, (*Unknown).encode)
}
