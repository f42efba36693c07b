package mcptypes

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
	"github.com/go-json-experiment/json/jsontext"
)

// Base64 is binary data in the base64 encoding of RFC 4648, section 4. It keeps the text
// that was sent, because the schema also admits text that cannot be decoded.
type Base64 string

// Base64Of returns the encoding of data.
func Base64Of(data []byte) Base64 { return Base64(base64.StdEncoding.EncodeToString(data)) }

// Bytes decodes the data.
func (v Base64) Bytes() ([]byte, error) { return base64.StdEncoding.DecodeString(string(v)) }

// MarshalJSON implements [encoding/json.Marshaler].
func (v Base64) MarshalJSON() ([]byte, error) {
	return marshal(&v)
}

// UnmarshalJSON implements [encoding/json.Unmarshaler] as [Decode] does.
func (v *Base64) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

func (v *Base64) decode(d *codec.Decoder) error { return codec.ReadString(v, d) }

func (v *Base64) encode(e *codec.Encoder) { e.Str(string(*v)) }

// ElicitValue is the value of one field of an elicitation's form: a string, a number or a
// boolean (https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation). A
// number keeps the text that was sent. The schema's JSON form admits only integers, and so
// does [DecodeStrict]. Since version 2025-11-25 a value may also be a list of strings; this
// package cannot read or write such a value. ElicitValue is comparable; the zero value is
// absent.
type ElicitValue struct {
	text string // the string, or the text of the number or list
	kind elicitKind
}

type elicitKind uint8

const (
	elicitAbsent elicitKind = iota
	elicitString
	elicitNumber
	elicitFalse
	elicitTrue
	elicitList
)

// ElicitString returns the string s as a value.
func ElicitString(s string) ElicitValue { return ElicitValue{s, elicitString} }

// ElicitInt returns the integer n as a value.
func ElicitInt(n int64) ElicitValue { return ElicitValue{strconv.FormatInt(n, 10), elicitNumber} }

// ElicitBool returns the boolean b as a value.
func ElicitBool(b bool) ElicitValue {
	if b {
		return ElicitValue{kind: elicitTrue}
	}
	return ElicitValue{kind: elicitFalse}
}

// ElicitStrings returns a list of strings as a value, for a field with several choices.
func ElicitStrings(s ...string) ElicitValue {
	b := []byte{'['}
	for i, text := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, text) // bad UTF-8 becomes U+FFFD
	}
	return ElicitValue{string(append(b, ']')), elicitList}
}

// ParseElicitValue reads one JSON value: a string, a number, a boolean or an
// array of strings.
func ParseElicitValue(raw []byte) (ElicitValue, error) {
	var v ElicitValue
	wrong := codec.Read(raw, false, func(d *codec.Decoder) (err error) {
		v, err = readElicitValue(d, true)
		return err
	})
	if wrong != nil {
		return ElicitValue{}, &DecodeError{"mcptypes: form value", wrong.Path(), wrong.Msg, wrong.Err}
	}
	return v, nil
}

// IsZero reports whether the value is absent.
func (v ElicitValue) IsZero() bool { return v.kind == elicitAbsent }

// Str returns the value as a string; ok is false if it is not a string.
func (v ElicitValue) Str() (s string, ok bool) {
	if v.kind != elicitString {
		return "", false
	}
	return v.text, true
}

// Bool returns the value as a boolean; ok is false if it is not a boolean.
func (v ElicitValue) Bool() (b, ok bool) {
	return v.kind == elicitTrue, v.kind == elicitTrue || v.kind == elicitFalse
}

// Number returns the text of the number; ok is false if the value is not a number.
func (v ElicitValue) Number() (n json.Number, ok bool) {
	if v.kind != elicitNumber {
		return "", false
	}
	return json.Number(v.text), true
}

// Strings returns the value as a list of strings; ok is false if it is not a list.
func (v ElicitValue) Strings() (list []string, ok bool) {
	if v.kind != elicitList {
		return nil, false
	}
	err := readStrings(&list, []byte(v.text))
	return list, err == nil
}

// String returns the value as JSON, and "" for the absent value.
func (v ElicitValue) String() string {
	if v.kind == elicitList {
		return v.text
	}
	b, _ := v.MarshalJSON()
	return string(b)
}

// MarshalJSON implements [encoding/json.Marshaler]. The absent value and a list
// are errors.
func (v ElicitValue) MarshalJSON() ([]byte, error) {
	return marshal(&v)
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (v *ElicitValue) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

func (v *ElicitValue) decode(d *codec.Decoder) (err error) {
	*v, err = readElicitValue(d, false)
	return err
}

// readElicitValue reads a value. With lists it also accepts an array of strings.
func readElicitValue(d *codec.Decoder, lists bool) (ElicitValue, error) {
	raw, err := d.FormValue(lists)
	if err != nil {
		return ElicitValue{}, err
	}
	switch raw[0] {
	case '"':
		s, err := jsontext.AppendUnquote(nil, raw)
		return ElicitString(string(s)), err
	case 't', 'f':
		return ElicitBool(raw[0] == 't'), nil
	case '[':
		var list []string
		err := readStrings(&list, raw)
		return ElicitStrings(list...), err
	}
	return ElicitValue{string(raw), elicitNumber}, nil
}

func readStrings(list *[]string, raw []byte) error {
	return read(raw, true, func(d *codec.Decoder) error { return codec.ReadList(list, d, codec.Str) })
}

var errList = errors.New("a list of strings is not a form value of this version")

func (v *ElicitValue) encode(e *codec.Encoder) {
	switch v.kind {
	case elicitString:
		e.Str(v.text)
	case elicitNumber:
		e.Raw(v.text)
	case elicitFalse, elicitTrue:
		e.Bool(v.kind == elicitTrue)
	case elicitList:
		e.Fail(errList)
	default:
		e.Absent()
	}
}
