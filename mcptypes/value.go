package mcptypes

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Base64 is binary data in the base64 encoding of RFC 4648, section 4. It is
// kept as the text that was sent, since the schema does not insist that the
// text can be decoded.
type Base64 string

// Base64Of returns the encoding of data.
func Base64Of(data []byte) Base64 { return Base64(base64.StdEncoding.EncodeToString(data)) }

// Bytes returns the data.
func (v Base64) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(string(v)) }

// MarshalJSON implements [encoding/json.Marshaler].
func (v Base64) MarshalJSON() ([]byte, error) { return encode(&v) }

// UnmarshalJSON implements [encoding/json.Unmarshaler], as [Decode].
func (v *Base64) UnmarshalJSON(b []byte) error { return decode(b, v, false) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (v Base64) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, &v) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (v *Base64) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, v) }

func (v *Base64) decode(d *decoder) (err error) {
	*v, err = readString[Base64](d)
	return err
}

func (v *Base64) encode(e *encoder) { e.string(string(*v)) }

// ElicitValue is what a person entered in one field of an elicitation's form: a
// string, a number or a boolean
// (https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation).
// A number is kept as the text that was sent; the schema's JSON form wants an
// integer, which is what [DecodeStrict] insists on. ElicitValue is comparable; the
// zero value is the absent one.
type ElicitValue struct {
	text string // the string, or the number's text
	kind elicitKind
}

type elicitKind uint8

const (
	elicitAbsent elicitKind = iota
	elicitString
	elicitNumber
	elicitFalse
	elicitTrue
)

// ElicitString returns the value that is the string s.
func ElicitString(s string) ElicitValue { return ElicitValue{s, elicitString} }

// ElicitInt returns the value that is the integer n.
func ElicitInt(n int64) ElicitValue { return ElicitValue{strconv.FormatInt(n, 10), elicitNumber} }

// ElicitBool returns the value that is the boolean b.
func ElicitBool(b bool) ElicitValue {
	if b {
		return ElicitValue{kind: elicitTrue}
	}
	return ElicitValue{kind: elicitFalse}
}

// IsZero reports whether the value is absent.
func (v ElicitValue) IsZero() bool { return v.kind == elicitAbsent }

// Str returns the value as a string; ok is false when it is something else.
func (v ElicitValue) Str() (s string, ok bool) {
	if v.kind != elicitString {
		return "", false
	}
	return v.text, true
}

// Bool returns the value as a boolean; ok is false when it is something else.
func (v ElicitValue) Bool() (b, ok bool) {
	return v.kind == elicitTrue, v.kind == elicitTrue || v.kind == elicitFalse
}

// Number returns the value as a number's text; ok is false when it is
// something else.
func (v ElicitValue) Number() (n json.Number, ok bool) {
	if v.kind != elicitNumber {
		return "", false
	}
	return json.Number(v.text), true
}

// String returns the value as JSON. The absent value prints as nothing.
func (v ElicitValue) String() string {
	b, _ := v.MarshalJSON()
	return string(b)
}

// MarshalJSON implements [encoding/json.Marshaler]. The absent value is an
// error.
func (v ElicitValue) MarshalJSON() ([]byte, error) { return encode(&v) }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (v *ElicitValue) UnmarshalJSON(b []byte) error { return Decode(b, v) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (v ElicitValue) MarshalJSONTo(enc *jsontext.Encoder) error { return marshalTo(enc, &v) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (v *ElicitValue) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, v) }

func (v *ElicitValue) decode(d *decoder) error {
	switch d.PeekKind() {
	case '"':
		s, err := d.string()
		*v = ElicitString(s)
		return err
	case 't', 'f':
		b, err := d.bool()
		*v = ElicitBool(b)
		return err
	case '0':
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if d.strict {
			if _, err := parseInteger(raw); err != nil {
				return d.fail("want a string, an integer or a boolean, found %.40s", raw)
			}
		}
		*v = ElicitValue{string(raw), elicitNumber}
		return nil
	}
	return d.wrong("a string, a number or a boolean")
}

func (v *ElicitValue) encode(e *encoder) {
	switch v.kind {
	case elicitString:
		e.string(v.text)
	case elicitNumber:
		e.b = append(e.b, v.text...)
	case elicitFalse, elicitTrue:
		e.bool(v.kind == elicitTrue)
	default:
		e.fail(errNoValue)
	}
}
