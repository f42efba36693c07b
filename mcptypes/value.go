package mcptypes

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

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
func (v Base64) MarshalJSON() ([]byte, error) { return marshal(&v) }

// UnmarshalJSON implements [encoding/json.Unmarshaler] as [Decode] does.
func (v *Base64) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

func (v *Base64) decode(d *codec.Decoder) error { return codec.ReadString(v, d) }

func (v *Base64) encode(e *codec.Encoder) { e.Str(string(*v)) }

// ElicitValue is the value of one field of an elicitation's form: a string, a number or a
// boolean (https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation). A
// number keeps the text that was sent. The schema's JSON form admits only integers, and so
// does [DecodeStrict]. Since version 2025-11-25 a value may also be a list of strings, which
// package modern reads and writes, and this one refuses. ElicitValue is comparable; the zero value is
// absent.
type ElicitValue struct {
	text string // the JSON, but of a string a quote and the string itself
}

// ElicitString returns the string s as a value.
func ElicitString(s string) ElicitValue { return ElicitValue{`"` + s} }

// ElicitInt returns the integer n as a value.
func ElicitInt(n int64) ElicitValue { return ElicitValue{strconv.FormatInt(n, 10)} }

// ElicitBool returns the boolean b as a value.
func ElicitBool(b bool) ElicitValue { return ElicitValue{strconv.FormatBool(b)} }

// ElicitStrings returns a list of strings as a value, for a field with several choices in package modern.
func ElicitStrings(s ...string) ElicitValue {
	b := []byte{'['}
	for i, text := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, text) // bad UTF-8 becomes U+FFFD
	}
	return ElicitValue{string(append(b, ']'))}
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
func (v ElicitValue) IsZero() bool { return v.text == "" }

// Str returns the value as a string; ok is false if it is not a string.
func (v ElicitValue) Str() (s string, ok bool) {
	if !v.is(`"`) {
		return "", false
	}
	return v.text[1:], true
}

// Bool returns the value as a boolean; ok is false if it is not a boolean.
func (v ElicitValue) Bool() (b, ok bool) { return v.text == "true", v.is("tf") }

// Number returns the text of the number; ok is false if the value is not a number.
func (v ElicitValue) Number() (n json.Number, ok bool) {
	if !v.is("-0123456789") {
		return "", false
	}
	return json.Number(v.text), true
}

// Strings returns the value as a list of strings; ok is false if it is not a list.
func (v ElicitValue) Strings() (list []string, ok bool) {
	if !v.is("[") {
		return nil, false
	}
	err := readStrings(&list, []byte(v.text))
	return list, err == nil
}

// is reports whether the text begins with one of the characters.
func (v ElicitValue) is(first string) bool {
	return v.text != "" && strings.IndexByte(first, v.text[0]) >= 0
}

// String returns the value as JSON, and "" for the absent value.
func (v ElicitValue) String() string {
	s, ok := v.Str()
	if !ok {
		return v.text
	}
	b, _ := jsontext.AppendQuote(nil, s) // bad UTF-8 becomes U+FFFD
	return string(b)
}

// MarshalJSON implements [encoding/json.Marshaler]. The absent value and a list
// are errors.
func (v ElicitValue) MarshalJSON() ([]byte, error) { return marshal(&v) }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (v *ElicitValue) UnmarshalJSON(b []byte) error { return unmarshal(b, v) }

func (v *ElicitValue) decode(d *codec.Decoder) (err error) {
	*v, err = readElicitValue(d, false)
	return err
}

// readElicitValue reads a value. With lists it also accepts an array of strings.
func readElicitValue(d *codec.Decoder, lists bool) (v ElicitValue, err error) {
	raw, err := d.FormValue(lists)
	switch v.text = string(raw); {
	case err != nil:
	case v.is(`"`):
		v = ElicitString(codec.Unquote(raw))
	case v.is("["):
		var list []string
		err = readStrings(&list, raw)
		v = ElicitStrings(list...)
	}
	return v, err
}

func readStrings(list *[]string, raw []byte) error {
	return read(raw, true, func(d *codec.Decoder) error { return codec.ReadList(list, d, codec.Str) })
}

var errList = errors.New("a list of strings is not a form value of this version")

func (v *ElicitValue) encode(e *codec.Encoder) {
	s, isString := v.Str()
	switch {
	case isString:
		e.Str(s)
	case v.is("["):
		e.Fail(errList)
	case v.IsZero():
		e.Absent()
	default:
		e.Raw(v.text)
	}
}
